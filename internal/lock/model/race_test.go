//go:build race

package model

// The search of one variant is one goroutine: the race detector finds nothing in the large ones, at ten
// times the cost.
const underRace = true
