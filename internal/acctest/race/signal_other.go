//go:build !unix

package main

import (
	"errors"
	"os"
)

// Where a process cannot be stopped and continued, the package builds, and the race ends at once.
var errNoSignals = errors.New("the race needs SIGSTOP and SIGCONT")

func freezeSelf()                     { panic(errNoSignals) }
func killSelf()                       { panic(errNoSignals) }
func freeze(*os.Process) error        { return errNoSignals }
func thaw(*os.Process) error          { return errNoSignals }
func wasKilled(*os.ProcessState) bool { return false }
