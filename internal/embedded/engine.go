package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Version is the version of the npm package that carries the engine (ClickHouse 26.7.2).
const Version = "26.7.3-stable.1"

// EngineEnv names the environment variable that says where the engine is.
const EngineEnv = "CLICKHOUSESTATE_ENGINE"

// HTTPPortEnv names the environment variable that tells the tests the HTTP port of the server that CLICKHOUSE_HOST and
// CLICKHOUSE_PORT name.
const HTTPPortEnv = "CLICKHOUSESTATE_TEST_HTTP_PORT"

// DataEnv names the environment variable that says in which folder temporary data folders are made: one in memory, for
// example. Default: the system's folder for temporary files.
const DataEnv = "CLICKHOUSESTATE_TEST_DATA"

const libraryName = "libchdb.so" // on macOS too

// ErrNoEngine is wrapped by the error of [FindEngine] and [Start] when there is no engine on this machine.
var ErrNoEngine = errors.New("no ClickHouse engine found")

// Engine is a ClickHouse engine on this machine.
type Engine struct {
	// Path is absolute.
	Path string
	// Library tells libchdb, which this program loads, from a `clickhouse` binary, which it runs.
	Library bool
}

// FindEngine looks for an engine: where CLICKHOUSESTATE_ENGINE points, in the repository's folder .engine, and for a
// `clickhouse` on the PATH, in this order.
func FindEngine() (Engine, error) {
	if path := os.Getenv(EngineEnv); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return Engine{}, fmt.Errorf("find the engine: %w", err)
		}
		if !isFile(path) {
			return Engine{}, fmt.Errorf("%w: %s names %s, which is no file", ErrNoEngine, EngineEnv, path)
		}
		return Engine{Path: path, Library: isLibrary(path)}, nil
	}
	if root, err := moduleRoot(); err == nil {
		if path := enginePath(root); isFile(path) {
			return Engine{Path: path, Library: true}, nil
		}
	}
	if path, err := exec.LookPath("clickhouse"); err == nil {
		path, err := filepath.Abs(path)
		return Engine{Path: path}, err
	}
	if _, err := npmPackage(runtime.GOOS, runtime.GOARCH); err != nil {
		return Engine{}, fmt.Errorf("%w: %w", ErrNoEngine, err)
	}
	return Engine{}, fmt.Errorf("%w: run `make engine`, or set CLICKHOUSE_HOST to use a server of your own", ErrNoEngine)
}

// enginePath is where the fetched engine lies. The version is part of it, so a new version is fetched anew.
func enginePath(root string) string {
	return filepath.Join(root, ".engine", Version, libraryName)
}

// moduleRoot is the nearest folder above the current one that holds a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}
	for {
		if isFile(filepath.Join(dir, "go.mod")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the module root: no go.mod here or above")
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isLibrary(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".so" || ext == ".dylib"
}

// npmPackage names the npm package that carries the engine for a platform.
func npmPackage(goos, goarch string) (string, error) {
	switch goos + "/" + goarch {
	case "linux/amd64":
		return "@chdb/lib-linux-x64-gnu", nil
	case "linux/arm64":
		return "@chdb/lib-linux-arm64-gnu", nil
	case "darwin/amd64":
		return "@chdb/lib-darwin-x64", nil
	case "darwin/arm64":
		return "@chdb/lib-darwin-arm64", nil
	default:
		return "", fmt.Errorf("the engine exists for linux (glibc) and darwin on amd64 and arm64, not for %s/%s; set CLICKHOUSE_HOST to use a server of your own", goos, goarch)
	}
}
