//go:build unix

package main

import "syscall"

// ownProcessGroup keeps a Ctrl-C in the terminal from a child.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
