//go:build unix

package main

import (
	"os"
	"syscall"
)

// sendSelf sends this process a signal.
func sendSelf(signal syscall.Signal) {
	if err := syscall.Kill(os.Getpid(), signal); err != nil {
		panic(err) // a process may always signal itself
	}
}

// freezeSelf stops this process until it is thawed from outside, killSelf ends it without a word.
func freezeSelf() { sendSelf(syscall.SIGSTOP) }
func killSelf()   { sendSelf(syscall.SIGKILL) }

// freeze stops a process, thaw continues it. An error means that it has ended.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }

// wasKilled tells that a process was ended by SIGKILL, whoever sent it.
func wasKilled(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
