package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

func TestAddError(t *testing.T) {
	t.Parallel()
	at := statestore.Address{Database: "meltano", Table: "state", StateID: "dev:it's"}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"exists":              {&statestore.ExistsError{Address: at, Version: 7}, []string{"with version 7", `  terraform import <address> 'meltano/state/dev:it'\''s'`, `id = "meltano/state/dev:it's"`}},
		"moved":               {&statestore.MovedError{Address: at, Planned: 7, Found: 9}, []string{"run plan again", "planned version 7, found 9"}},
		"gone":                {&statestore.MovedError{Address: at, Planned: 7, Gone: true}, []string{"run plan again", "deleted since it was planned"}},
		"busy":                {&statestore.BusyError{StateID: at.StateID, LockID: "42", Holder: "me@here", Since: noon, Stale: noon.Add(300 * time.Second)}, []string{"holder    me@here", "lock_id   42", "since     2026-01-02T12:00:00Z", "stale     2026-01-02T12:05:00Z"}},
		"busy with Meltano":   {&statestore.BusyError{LockID: "42", Since: noon}, []string{"a Meltano client"}},
		"busy with nobody":    {&statestore.BusyError{}, []string{"Others kept taking the lock"}},
		"lost":                {&statestore.LostError{LockID: "42", Reason: "swept"}, []string{"nothing is written under it", "swept"}},
		"uncertain":           {&statestore.UncertainError{Address: at, Stamp: 7, Stored: 9, Err: errors.New("cause")}, []string{"sent as version 7", "Run plan again", "cause"}},
		"table exists":        {&statestore.TableExistsError{Database: "meltano", Table: "state"}, []string{"terraform import <address>"}},
		"no table":            {&statestore.NoTableError{Database: "meltano", Table: "state", Missing: "table"}, []string{"clickhousestate_table"}},
		"no database":         {&statestore.NoTableError{Database: "meltano", Missing: "database"}, []string{"create_database = true"}},
		"unfit":               {&statestore.UnfitError{Reasons: []string{"one", "two"}}, []string{"  - one\n  - two"}},
		"elsewhere":           {&moveError{from: at, to: at, found: 3}, []string{"rows are not copied", "another version: 3"}},
		"no right":            {&statestore.ServerError{Code: 497, Message: "few: Not enough privileges. To execute this query, it's necessary to have the grant INSERT ON m.t."}, []string{"  GRANT INSERT ON m.t TO few"}},
		"a replica behind":    {&statestore.ServerError{Code: 289, Message: "no"}, []string{"lags behind the others", "system.replicas"}},
		"readonly":            {&statestore.ServerError{Code: 164, Message: "no"}, []string{"may only read"}},
		"connect":             {&statestore.ConnectError{Host: "h", Port: 1, User: "u", Hint: "a hint", Err: errors.New("refused")}, []string{"h:1", "a hint"}},
		"no answer":           {&statestore.NoAnswerError{QueryID: "42", Err: errors.New("reset")}, []string{"may have happened or not", "reset"}},
		"interrupted":         {&statestore.NoAnswerError{QueryID: "42", Err: context.Canceled}, []string{"was interrupted"}},
		"timed out":           {fmt.Errorf("entry.read: %w", context.DeadlineExceeded), []string{"timeouts", "query_timeout"}},
		"anything else":       {errors.New("something"), []string{"something"}},
		"wrapped, and joined": {errors.Join(errors.New("x"), fmt.Errorf("y: %w", &statestore.LostError{})), []string{"The lock was lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			addError(&diags, attempt{verb: "create", kind: "state entry", object: `entry "dev:it's"`, id: at.String(), server: "SERVER"}, tc.err)
			if len(diags) != 1 || diags[0].Summary() != "Unable to create state entry" {
				t.Fatalf("got %v", diags)
			}
			detail := diags[0].Detail()
			if !strings.HasPrefix(detail, "Tried to create entry \"dev:it's\" on SERVER.\n\n") || !strings.HasSuffix(detail, tc.err.Error()) {
				t.Errorf("got %q, want what was tried first and the error last", detail)
			}
			for _, want := range tc.want {
				if !strings.Contains(detail, want) {
					t.Errorf("got %q, want %q in it", detail, want)
				}
			}
		})
	}
}

func TestWarnWritten(t *testing.T) {
	t.Parallel()
	at := statestore.Address{StateID: "dev:x"}
	entry := statestore.Entry{UpdatedAt: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
	for name, tc := range map[string]struct {
		written statestore.Written
		want    string
	}{
		"nothing":    {statestore.Written{Entry: entry}, ""},
		"took over":  {statestore.Written{TookOver: true}, `State entry "dev:x" was there already`},
		"left":       {statestore.Written{Left: true}, `State entry "dev:x" was left as it is`},
		"ahead":      {statestore.Written{Entry: entry, Ahead: time.Hour}, `State entry "dev:x" hides what Meltano writes until 2026-01-02T12:00:00Z`},
		"unreleased": {statestore.Written{Unreleased: &statestore.ReleaseError{Err: errors.New("gone")}}, `The lock of state entry "dev:x" may not be released`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			warnWritten(&diags, at, policyEnforce, tc.written)
			got := ""
			for _, d := range diags {
				got += d.Summary()
			}
			if got != tc.want || diags.HasError() {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHCLQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`plain`:       `"plain"`,
		`"q" \ b`:     `"\"q\" \\ b"`,
		"\n\r\t\x07":  `"\n\r\t\U00000007"`,
		"${x} %{y}":   `"$${x} %%{y}"`,
		"$1 $$x$$ %_": `"$1 $$x$$ %_"`,
		"héé 🦆":       `"héé 🦆"`,
	} {
		if got := hclQuote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ctx := tflogtest.RootLogger(t.Context(), &out)
	logger := newLogger("hunter2", "").With("operation", "entry.read").WithGroup("query")
	logger.DebugContext(ctx, "statement as hunter2", "id", 42, slog.Group("rows", "read", 1), "err", errors.New("no hunter2"))
	logger.Info("without a request") // goes nowhere, and does not panic

	entries, err := tflogtest.MultilineJSONDecode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Fatalf("got %v, want one entry", entries)
	}
	for key, want := range map[string]string{
		"@level": "debug", "@message": "statement as ***", "operation": "entry.read", "query.id": "42", "query.rows.read": "1", "query.err": "no ***",
	} {
		if got := entries[0][key]; got != want {
			t.Errorf("%s is %v, want %q", key, got, want)
		}
	}
}
