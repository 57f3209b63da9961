package chconn_test

import (
	"context"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// configOf is how to reach a server over a protocol.
func configOf(e acctest.Endpoint, protocol chconn.Protocol) chconn.Config {
	port := e.NativePort
	if protocol == chconn.HTTP {
		port = e.HTTPPort
	}
	return chconn.Config{
		Host: e.Host, Port: port, Protocol: protocol, Username: e.Username, Password: e.Password,
		QueryTimeout: time.Minute, Version: "1.2.3",
	}
}

// newClient opens a client that closes with the test.
func newClient(t *testing.T, config chconn.Config) *chconn.Client {
	t.Helper()
	c, err := chconn.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// onBoth runs a test over each protocol, on the shared server.
func onBoth(t *testing.T, test func(t *testing.T, c *chconn.Client)) {
	t.Helper()
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			test(t, newClient(t, configOf(acctest.Server(t), protocol)))
		})
	}
}

// exec runs a statement that has to succeed.
func exec(t *testing.T, c *chconn.Client, text string, args ...any) chconn.Result {
	t.Helper()
	result, err := c.Exec(context.Background(), chconn.Statement{Operation: "test.exec", Text: text, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// column reads a result of one column of strings.
func column(t *testing.T, c *chconn.Client, s chconn.Statement) []string {
	t.Helper()
	if s.Operation == "" {
		s.Operation = "test.column"
	}
	var values []string
	err := c.Query(context.Background(), s, func(row chconn.Row) error {
		var value string
		err := row.Scan(&value)
		values = append(values, value)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// one reads a single string.
func one(t *testing.T, c *chconn.Client, text string, args ...any) string {
	t.Helper()
	values := column(t, c, chconn.Statement{Text: text, Args: args})
	if len(values) != 1 {
		t.Fatalf("%s: %d rows, want one", text, len(values))
	}
	return values[0]
}
