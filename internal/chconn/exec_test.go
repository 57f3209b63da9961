package chconn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

func TestWrittenRows(t *testing.T) {
	database := acctest.Database(t)
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		table := database + ".written"
		exec(t, c, "CREATE OR REPLACE TABLE "+table+" (n UInt64) ENGINE = MergeTree ORDER BY n")
		for _, rows := range []uint64{0, 1, 7, 100_000, 3_000_000} {
			result := exec(t, c, "INSERT INTO "+table+" SELECT number FROM numbers(?)", rows)
			if result.WrittenRows != rows {
				t.Errorf("%d rows written, want %d", result.WrittenRows, rows)
			}
			if result.QueryID == "" {
				t.Error("no query id")
			}
		}
		if result := exec(t, c, "TRUNCATE TABLE "+table); result.WrittenRows != 0 {
			t.Errorf("a TRUNCATE wrote %d rows", result.WrittenRows)
		}
	})
}

// The same exception looks the same over both protocols.
func TestServerError(t *testing.T) {
	database := acctest.Database(t)
	for _, tc := range []struct {
		text    string
		code    int32
		name    string
		message string // its beginning
	}{
		{"SELECT * FROM " + database + ".nosuch", chconn.CodeUnknownTable, "UNKNOWN_TABLE", "Unknown table expression identifier '" + database + ".nosuch'"},
		{"CREATE TABLE nosuch.t (n UInt8) ENGINE = Memory", chconn.CodeUnknownDatabase, "UNKNOWN_DATABASE", "Database nosuch does not exist"},
		{"SELECT throwIf(1, 'lock lost: it''s gone')", chconn.CodeThrowIf, "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", "lock lost: it's gone"},
		{"SELECT count() FROM numbers(100) WHERE NOT throwIf(number = 50, 'moved (here)')", chconn.CodeThrowIf, "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", "moved (here)"},
		{"SELECT 1 SETTINGS nosuch_setting = 1", chconn.CodeUnknownSetting, "UNKNOWN_SETTING", "Unknown setting 'nosuch_setting'"},
		{"SELECT sleep(2) SETTINGS max_execution_time = 1", chconn.CodeTimeoutExceeded, "TIMEOUT_EXCEEDED", "Timeout exceeded: "},
	} {
		messages := map[chconn.Protocol]string{}
		for _, protocol := range chconn.Protocols() {
			c := newClient(t, configOf(acctest.Server(t), protocol))
			_, execErr := c.Exec(context.Background(), chconn.Statement{Operation: "test.exec", Text: tc.text, QueryID: "exec-" + string(protocol) + tc.name})
			queryErr := c.Query(context.Background(), chconn.Statement{Operation: "test.query", Text: tc.text}, func(chconn.Row) error { return nil })
			for operation, err := range map[string]error{"test.exec": execErr, "test.query": queryErr} {
				var server *chconn.ServerError
				if !errors.As(err, &server) {
					t.Fatalf("%s %s: %T %v, want a ServerError", protocol, tc.text, err, err)
				}
				if server.Code != tc.code || server.Name != tc.name || !strings.HasPrefix(server.Message, tc.message) {
					t.Errorf("%s %s: %d %s %q, want %d %s %q...", protocol, tc.text, server.Code, server.Name, server.Message, tc.code, tc.name, tc.message)
				}
				if want := fmt.Sprintf("%s: ClickHouse error %d (%s): %s", operation, tc.code, tc.name, server.Message); err.Error() != want {
					t.Errorf("%q, want %q", err, want)
				}
				if operation == "test.exec" && server.QueryID != "exec-"+string(protocol)+tc.name || server.QueryID == "" {
					t.Errorf("%s: query id %q", protocol, server.QueryID)
				}
				messages[protocol] = server.Message
			}
		}
		if tc.code != chconn.CodeTimeoutExceeded && messages[chconn.Native] != messages[chconn.HTTP] {
			t.Errorf("native says %q, HTTP %q", messages[chconn.Native], messages[chconn.HTTP])
		}
	}
}

// A failure in the middle of the rows is an error, not a short result.
func TestErrorAfterRows(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		rows := 0
		s := chconn.Statement{Operation: "test", Text: "SELECT throwIf(number = 2000000, 'too far') FROM numbers(3000000) SETTINGS max_block_size = 1000"}
		err := c.Query(context.Background(), s, func(chconn.Row) error { rows++; return nil })
		var server *chconn.ServerError
		if !errors.As(err, &server) || server.Code != chconn.CodeThrowIf {
			t.Errorf("after %d rows: %v, want error 395", rows, err)
		}
	})
}

func TestScanError(t *testing.T) {
	stop := errors.New("that is enough")
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		for range 3 { // a connection that was given up does no harm to the next statement
			rows := 0
			err := c.Query(context.Background(), chconn.Statement{Operation: "test.scan", Text: "SELECT number FROM numbers(10000000)"}, func(chconn.Row) error {
				if rows++; rows == 70_000 {
					return stop
				}
				return nil
			})
			if !errors.Is(err, stop) || err.Error() != "test.scan: that is enough" || rows != 70_000 {
				t.Errorf("%v after %d rows, want %v after 70000", err, rows, stop)
			}
			if got := one(t, c, "SELECT toString(1)"); got != "1" {
				t.Errorf("then SELECT 1 = %s", got)
			}
		}
	})
}

// A constraint's exception shows the values that break it. They are a payload, and stay out of the error.
func TestNoPayloadInErrors(t *testing.T) {
	database := acctest.Database(t)
	const secret = "s3cr3t-t0ken"
	payloads := map[string]string{
		"plain":     `{"singer_state": {"token": "` + secret + `"`,
		"quotes":    `{"a": "it's", "token": '` + secret + `' \"`,
		"lines":     "{\n\t\"token\":\n\"" + secret + "\"\n",
		"not UTF-8": "\xff\xfe" + secret + "\x00",
		"long":      `{"token": "` + strings.Repeat(secret+" ", 1000),
	}
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		table := database + ".checked"
		exec(t, c, "CREATE OR REPLACE TABLE "+table+" (id String, payload Nullable(String), CONSTRAINT json CHECK isValidJSON(assumeNotNull(payload))) ENGINE = MergeTree ORDER BY id")
		for name, payload := range payloads {
			for what, text := range map[string]string{
				"constraint": "INSERT INTO " + table + " SELECT id, payload FROM incoming",
				"conversion": "SELECT toUInt64(assumeNotNull(payload)) FROM incoming",
				"cast":       "SELECT CAST(payload AS JSON) FROM incoming",
			} {
				_, err := c.Exec(context.Background(), chconn.Statement{
					Operation: "test.write", Text: text,
					External: []chconn.Table{{
						Name:    "incoming",
						Columns: []chconn.Column{{Name: "id", Type: "String"}, {Name: "payload", Type: "Nullable(String)"}},
						Rows:    [][]any{{"dev:x", &payload}},
					}},
				})
				var server *chconn.ServerError
				if !errors.As(err, &server) {
					t.Errorf("%s, %s: %v, want a ServerError", what, name, err)
					continue
				}
				if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "singer") {
					t.Errorf("%s, %s: the payload is in %q", what, name, err)
				}
				if len(err.Error()) > 1200 {
					t.Errorf("%s, %s: an error of %d bytes", what, name, len(err.Error()))
				}
			}
		}
	})
}

// What the text itself says is never taken for a part of the payload.
func TestThrowIfTextStays(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		_, err := c.Exec(context.Background(), chconn.Statement{
			Operation: "test",
			Text:      "SELECT throwIf(1, 'lock lost, says the fence') FROM ids",
			External:  []chconn.Table{{Name: "ids", Columns: []chconn.Column{{Name: "id", Type: "String"}}, Rows: [][]any{{"dev:lock lost, says the fence"}}}},
		})
		if err == nil || !strings.Contains(err.Error(), "lock lost, says the fence") {
			t.Errorf("%v, want the words of throwIf", err)
		}
	})
}
