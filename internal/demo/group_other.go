//go:build !unix

package main

import "syscall"

// ownProcessGroup would keep a Ctrl-C in the terminal from a child.
func ownProcessGroup() *syscall.SysProcAttr { return nil }
