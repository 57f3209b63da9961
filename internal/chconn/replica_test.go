package chconn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

// TestReplicaBehind tries again for a while what a replica refuses that lags behind, and names the error in the end. The
// engine of the tests has no replicas: it throws the exception's code on demand.
func TestReplicaBehind(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		database := acctest.Database(t)
		exec(t, c, "CREATE TABLE "+database+".arrived (x Int8) ENGINE = Memory")
		exec(t, c, "CREATE TABLE "+database+".target (x UInt8) ENGINE = Memory")
		behind := "throwIf((SELECT count() FROM " + database + ".arrived) = 0, 'behind', toInt16(289))"
		settings := map[string]string{"allow_custom_error_code_in_throwif": "1"}
		read := func() error {
			return c.Query(context.Background(), chconn.Statement{Operation: "test.read", Text: "SELECT " + behind, Settings: settings}, func(chconn.Row) error { return nil })
		}
		start := time.Now()
		var server *chconn.ServerError
		if err := read(); !errors.As(err, &server) || server.Code != chconn.CodeReplicaBehind || server.Name != "REPLICA_IS_NOT_IN_QUORUM" {
			t.Errorf("a replica that stays behind: %v", err)
		}
		if took := time.Since(start); took < time.Second {
			t.Errorf("gave up after %s", took)
		}

		done := make(chan error, 2)
		go func() { done <- read() }()
		go func() {
			_, err := c.Exec(context.Background(), chconn.Statement{Operation: "test.write", Text: "INSERT INTO " + database + ".target SELECT " + behind, Settings: settings})
			done <- err
		}()
		select {
		case err := <-done:
			t.Errorf("before the replica has caught up: %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		exec(t, c, "INSERT INTO "+database+".arrived VALUES (1)")
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("a replica that catches up: %v", err)
			}
		}
		if n := one(t, c, "SELECT toString(count()) FROM "+database+".target"); n != "1" {
			t.Errorf("%s rows were written, want 1", n)
		}
	})
}
