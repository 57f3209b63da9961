//go:build linux || darwin

package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libraryResult is libchdb's struct local_result_v2.
type libraryResult struct {
	buf          *byte
	len          uintptr
	vec          unsafe.Pointer
	elapsed      float64
	rowsRead     uint64
	bytesRead    uint64
	errorMessage *byte
}

// runLibrary loads libchdb and runs `clickhouse local` in it. It returns when that ends.
func runLibrary(path string, args []string) error {
	// The engine keeps state in its thread, and wants the same one from start to end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("load the engine: %w", err)
	}
	symbol, err := purego.Dlsym(lib, "query_stable_v2")
	if err != nil {
		return fmt.Errorf("load the engine: %w", err)
	}
	var query func(argc int32, argv **byte) *libraryResult
	purego.RegisterFunc(&query, symbol)

	argv := make([]*byte, len(args)+1) // C's argv ends with a null
	for i, arg := range args {
		if argv[i], err = syscall.BytePtrFromString(arg); err != nil {
			return fmt.Errorf("argument %d of the engine: %w", i, err)
		}
	}
	result := query(int32(len(args)), &argv[0])
	runtime.KeepAlive(argv)
	if result == nil {
		return errors.New("the engine returned nothing")
	}
	if result.errorMessage != nil {
		return errors.New(cString(result.errorMessage))
	}
	return nil
}

func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// terminalAsStdin puts a pseudo-terminal in the place of standard input. It returns what was there before, and a function
// that hangs up.
func terminalAsStdin() (before *os.File, hangUp func(), err error) {
	var (
		openpt   func(flags int32) int32
		grantpt  func(fd int32) int32
		unlockpt func(fd int32) int32
		ptsname  func(fd int32) *byte
		dup2     func(from, to int32) int32
	)
	purego.RegisterLibFunc(&openpt, purego.RTLD_DEFAULT, "posix_openpt")
	purego.RegisterLibFunc(&grantpt, purego.RTLD_DEFAULT, "grantpt")
	purego.RegisterLibFunc(&unlockpt, purego.RTLD_DEFAULT, "unlockpt")
	purego.RegisterLibFunc(&ptsname, purego.RTLD_DEFAULT, "ptsname")
	purego.RegisterLibFunc(&dup2, purego.RTLD_DEFAULT, "dup2")

	fd, err := syscall.Dup(0)
	if err != nil {
		return nil, nil, fmt.Errorf("keep standard input: %w", err)
	}
	syscall.CloseOnExec(fd)
	before = os.NewFile(uintptr(fd), "stdin")

	master := openpt(syscall.O_RDWR | syscall.O_NOCTTY)
	if master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 {
		return nil, nil, errors.New("no pseudo-terminal to be had")
	}
	syscall.CloseOnExec(int(master)) // or a `clickhouse` that we run would hold its own terminal open
	slave, err := os.OpenFile(cString(ptsname(master)), syscall.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = slave.Close() }() // fd 0 stays
	if dup2(int32(slave.Fd()), 0) != 0 {
		return nil, nil, errors.New("replace standard input")
	}
	return before, func() { _ = syscall.Close(int(master)) }, nil
}

// ownProcessGroup keeps a Ctrl-C in our terminal from the child: we stop it in good order.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the child, and the engine if that is a process of its own.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// killOwnGroup is killGroup in the child.
func killOwnGroup() { _ = syscall.Kill(0, syscall.SIGKILL) }
