package bookmark

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Why [Parse] refuses a text. Errors of this package name a position, never a
// key or a value: a payload may hold what must not reach a log.
var (
	ErrSyntax       = errors.New("not valid JSON")
	ErrNotObject    = errors.New("not a JSON object")
	ErrDuplicateKey = errors.New("repeated key in a JSON object")
	ErrTooDeep      = fmt.Errorf("JSON nested more than %d levels deep", MaxDepth)
	ErrEncoding     = errors.New("not valid UTF-8")
	ErrNumber       = fmt.Errorf("number with an exponent of more than %d digits", maxExponentDigits)
	ErrTooLarge     = errors.New("larger than 4 GiB")
)

// ParseError says where and why a text was refused. It wraps one of the
// package's sentinel errors.
type ParseError struct {
	Err    error
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // in characters, from 1
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("parse state: %v at line %d, column %d", e.Err, e.Line, e.Column)
}

func (e *ParseError) Unwrap() error { return e.Err }

func newParseError(err error, text string, offset int) *ParseError {
	before := text[:offset]
	line := strings.LastIndexByte(before, '\n') + 1
	return &ParseError{
		Err:    err,
		Offset: offset,
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[line:]),
	}
}
