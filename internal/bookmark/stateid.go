package bookmark

import (
	"errors"
	"fmt"
	"strings"
)

// ErrStateID is wrapped by the errors of [ParseStateID] and [StateID.Validate].
var ErrStateID = errors.New("not a state ID of the form <environment>:<extractor>-to-<loader>[:<suffix>]")

// StateID is the name that Meltano gives to the state of a pipeline. It is only
// Meltano's habit: any string is legal as a state ID.
type StateID struct {
	Environment string // for example "prod"
	Extractor   string // for example "tap-github"
	Loader      string // for example "target-clickhouse"
	Suffix      string // may be empty, may contain colons
}

// String returns the state ID as Meltano spells it.
func (id StateID) String() string {
	s := id.Environment + ":" + id.Extractor + "-to-" + id.Loader
	if id.Suffix != "" {
		s += ":" + id.Suffix
	}
	return s
}

// Validate checks that the parts are there and that [ParseStateID] finds them
// again in the whole.
func (id StateID) Validate() error {
	back, err := ParseStateID(id.String())
	if err != nil {
		return err
	}
	if back != id {
		return fmt.Errorf("parts of %q would be read as environment %q, extractor %q, loader %q, suffix %q: %w",
			id.String(), back.Environment, back.Extractor, back.Loader, back.Suffix, ErrStateID)
	}
	return nil
}

// ParseStateID takes a state ID apart, so that String gives it back unchanged.
//
// The environment reaches to the first colon, and the suffix starts after the
// second one. Where "-to-" occurs more than once, as in
// dev:tap-csv-to-json-to-target-jsonl, the loader starts after the last one
// that makes it start with "target-"; if none does, after the last one.
func ParseStateID(s string) (StateID, error) {
	environment, rest, ok := strings.Cut(s, ":")
	if !ok {
		return StateID{}, fmt.Errorf("parse %q: no colon after the environment: %w", s, ErrStateID)
	}
	if environment == "" {
		return StateID{}, fmt.Errorf("parse %q: empty environment: %w", s, ErrStateID)
	}
	pair, suffix, ok := strings.Cut(rest, ":")
	if ok && suffix == "" {
		return StateID{}, fmt.Errorf("parse %q: empty suffix: %w", s, ErrStateID)
	}
	at := strings.LastIndex(pair, "-to-target-")
	if at <= 0 {
		at = strings.LastIndex(pair, "-to-")
	}
	if at < 0 {
		return StateID{}, fmt.Errorf("parse %q: no -to- between extractor and loader: %w", s, ErrStateID)
	}
	id := StateID{Environment: environment, Extractor: pair[:at], Loader: pair[at+len("-to-"):], Suffix: suffix}
	if id.Extractor == "" || id.Loader == "" {
		return StateID{}, fmt.Errorf("parse %q: empty extractor or loader: %w", s, ErrStateID)
	}
	return id, nil
}
