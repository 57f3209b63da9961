package chconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Codes of exceptions that callers tell apart.
const (
	CodeTableExists          int32 = 57
	CodeUnknownTable         int32 = 60
	CodeSyntaxError          int32 = 62
	CodeUnknownDatabase      int32 = 81
	CodeUnknownSetting       int32 = 115
	CodeTimeoutExceeded      int32 = 159
	CodeReadOnly             int32 = 164
	CodeUnknownUser          int32 = 192
	CodeWrongPassword        int32 = 193
	CodeRequiredPassword     int32 = 194
	CodeTooManyQueries       int32 = 202
	CodeAborted              int32 = 236
	CodeTooManyParts         int32 = 252
	CodeQuorumPending        int32 = 286
	CodeReplicaBehind        int32 = 289
	CodeSupportDisabled      int32 = 344
	CodeCannotOptimize       int32 = 388
	CodeQueryWasCancelled    int32 = 394
	CodeThrowIf              int32 = 395
	CodeSettingConstraint    int32 = 452
	CodeAccessDenied         int32 = 497
	CodeAuthenticationFailed int32 = 516
)

// codeNames are the server's own names for codes, which the native protocol does not carry.
var codeNames = map[int32]string{
	CodeTableExists:          "TABLE_ALREADY_EXISTS",
	CodeUnknownTable:         "UNKNOWN_TABLE",
	CodeUnknownDatabase:      "UNKNOWN_DATABASE",
	CodeUnknownSetting:       "UNKNOWN_SETTING",
	CodeTimeoutExceeded:      "TIMEOUT_EXCEEDED",
	CodeReadOnly:             "READONLY",
	CodeUnknownUser:          "UNKNOWN_USER",
	CodeWrongPassword:        "WRONG_PASSWORD",
	CodeRequiredPassword:     "REQUIRED_PASSWORD",
	CodeTooManyQueries:       "TOO_MANY_SIMULTANEOUS_QUERIES",
	CodeAborted:              "ABORTED",
	CodeTooManyParts:         "TOO_MANY_PARTS",
	CodeSupportDisabled:      "SUPPORT_IS_DISABLED",
	CodeQuorumPending:        "UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE",
	CodeReplicaBehind:        "REPLICA_IS_NOT_IN_QUORUM",
	CodeCannotOptimize:       "CANNOT_ASSIGN_OPTIMIZE",
	CodeQueryWasCancelled:    "QUERY_WAS_CANCELLED",
	CodeThrowIf:              "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO",
	CodeSettingConstraint:    "SETTING_CONSTRAINT_VIOLATION",
	CodeAccessDenied:         "ACCESS_DENIED",
	CodeAuthenticationFailed: "AUTHENTICATION_FAILED",
}

// A ServerError is an exception that the server answered a statement with.
type ServerError struct {
	// Code is the exception's code, the same over both protocols.
	Code int32
	// Name is the server's name for the code, as far as it is known; to tell exceptions apart, use the code.
	Name string
	// Message is the server's text without its stack, version and code. Nothing of an external table's content is in it,
	// and it is cut at some length.
	Message string
	// QueryID is the statement's id on the server.
	QueryID string
}

func (e *ServerError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("ClickHouse error %d: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("ClickHouse error %d (%s): %s", e.Code, e.Name, e.Message)
}

// A NoAnswerError says that a statement may have reached the server, but its answer was lost: the connection broke, or the
// timeout or the caller ended the wait. Whether the statement was or will be carried out shows only what is stored.
type NoAnswerError struct {
	// QueryID is the statement's id on the server.
	QueryID string
	// Err is why; [context.Canceled] or [context.DeadlineExceeded] where the wait was ended.
	Err error
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("no answer to query %s, which may have been carried out: %s", e.QueryID, e.Err)
}

func (e *NoAnswerError) Unwrap() error { return e.Err }

// A ConnectError says that there is no usable connection, or no way in. The statement at hand was not carried out.
type ConnectError struct {
	// Host, Port, Protocol, TLS and User are what was used.
	Host     string
	Port     int
	Protocol Protocol
	TLS      bool
	User     string
	// Hint says what to change, where that can be guessed.
	Hint string
	// Err is what went wrong.
	Err error
}

func (e *ConnectError) Error() string {
	text := fmt.Sprintf("no %s: %s", describe(e.Host, e.Port, e.Protocol, e.TLS, e.User), e.Err)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

func (e *ConnectError) Unwrap() error { return e.Err }

// maxMessage bounds a server's message: what helps is at its beginning.
const maxMessage = 1000

var (
	// trailer is what HTTP adds to the native protocol's text: the code's name and the version.
	trailer = regexp.MustCompile(`(?s)^(.*?)(?: \(([A-Z][A-Z0-9_]+)\))?(?: \(version [^()]*(?:\([^()]*\))?\))?$`)
	// echo is where a message begins to repeat the statement, or rows, or how the server got there.
	echo = regexp.MustCompile(`(?s)(?: \(for query: |[.:,]? [Ii]n (?:query:|scope) |[.:]? [Ww]hile executing |\. Column values: |[.:]? Stack trace:).*$`)
)

// newServerError takes from the exception what may be shown.
func newServerError(exception *clickhouse.Exception, queryID string, statement Statement) *ServerError {
	parts := trailer.FindStringSubmatch(strings.TrimSpace(exception.Message))
	name := codeNames[exception.Code]
	if name == "" {
		name = parts[2]
	}
	// The native protocol has no period at the end of the same text.
	message := redact(strings.TrimSuffix(echo.ReplaceAllString(parts[1], ""), "."), statement)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return &ServerError{Code: exception.Code, Name: name, Message: message, QueryID: queryID}
}

// scanError is an error of the caller's own, met while rows were handed out.
type scanError struct{ err error }

func (e *scanError) Error() string { return e.err.Error() }

// explain turns what the driver says of an attempt into one of this package's errors.
func (c *Client) explain(ctx context.Context, x *exchange, s Statement, err error) error {
	var (
		scan      *scanError
		exception *clickhouse.Exception
		answer    *foreignError
	)
	notSent := errors.As(err, new(*dialError)) || c.config.Protocol == HTTP && !x.sent.Load()
	switch {
	case err == nil:
		return nil
	case errors.As(err, &scan):
		return scan.err
	case errors.As(err, &exception):
		server := newServerError(exception, x.queryID, s)
		if notSent || server.refused() {
			return c.config.connectError(server)
		}
		return server
	case notSent && errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("not sent: %w", cause(ctx))
	case notSent:
		return c.config.connectError(err)
	case ctx.Err() != nil:
		return &NoAnswerError{QueryID: x.queryID, Err: cause(ctx)}
	case errors.As(err, &answer) && answer.status < http.StatusInternalServerError:
		return c.config.connectError(err)
	default:
		return &NoAnswerError{QueryID: x.queryID, Err: plain(err)}
	}
}

// plain leaves out what says nothing to a user: an HTTP request's URL, which holds settings and ids besides, and the
// driver's connection numbers.
func plain(err error) error {
	var (
		request   *url.Error
		operation *net.OpError
	)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "server closed idle connection"):
		return errHungUp
	case errors.As(err, &operation):
		return operation
	case errors.As(err, &request):
		return request.Err
	default:
		return err
	}
}

// errHungUp is an end of file in words.
var errHungUp = fmt.Errorf("the other side closed the connection: %w", io.EOF)

// transient tells failures that may pass by themselves and before which nothing was done, from wrong configuration and
// from what took its time: failures to connect, and a replica that lags behind.
func transient(err error) bool {
	if hasCode(err, CodeReplicaBehind) || hasCode(err, CodeQuorumPending) {
		return true
	}
	var (
		connect *ConnectError
		answer  *foreignError
	)
	if !errors.As(err, &connect) {
		return false
	}
	if errors.As(err, &answer) {
		return answer.status >= http.StatusInternalServerError
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, errHungUp) || hasCode(err, CodeTooManyQueries)
}

// hasCode tells whether the error is this exception of the server's.
func hasCode(err error, code int32) bool {
	var server *ServerError
	return errors.As(err, &server) && server.Code == code
}

// refused tells the exceptions that mean "no way in".
func (e *ServerError) refused() bool {
	switch e.Code {
	case CodeAuthenticationFailed, CodeUnknownUser, CodeWrongPassword, CodeRequiredPassword:
		return true
	default:
		return false
	}
}

// missingGrant reads what the server says is missing:
//
//	few: Not enough privileges. To execute this query, it's necessary to have the grant SELECT(a, b) ON m.t.
//	... the grant SELECT for at least one column on system.mutations.
//	... the grant SELECT, DROP TABLE ON m.t. (Missing permissions: SELECT ON m.t, SELECT(a) ON m.t).
var missingGrant = regexp.MustCompile(`(?s)^(?:(.*): )?Not enough privileges\. .* have the grant (.+?)( for at least one column)? (?:ON|on) (.+?)\.?(?: \(Missing permissions: .*)?$`)

// MissingGrant returns the statement that gives the user the right whose lack the error is about.
func MissingGrant(err error) (grant string, ok bool) {
	var server *ServerError
	if !errors.As(err, &server) || server.Code != CodeAccessDenied {
		return "", false
	}
	parts := missingGrant.FindStringSubmatch(server.Message)
	if parts == nil {
		return "", false
	}
	user := "<user>"
	if parts[1] != "" {
		user = quoteIdentifier(parts[1])
	}
	return fmt.Sprintf("GRANT %s ON %s TO %s", parts[2], parts[4], user), true
}

// quoteIdentifier leaves a plain name as it is.
func quoteIdentifier(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}
