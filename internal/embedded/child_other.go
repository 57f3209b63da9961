//go:build !linux && !darwin

package embedded

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// There is no engine for these platforms: [FindEngine] says so, and nothing below is reached.

var errPlatform = errors.New("no engine for this platform")

func runLibrary(string, []string) error { return errPlatform }

func terminalAsStdin() (*os.File, func(), error) { return nil, nil, errPlatform }

func ownProcessGroup() *syscall.SysProcAttr { return nil }

func killGroup(*exec.Cmd) {}

func killOwnGroup() {}
