package chconn_test

import (
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

func TestFromURI(t *testing.T) {
	for _, tc := range []struct {
		uri                      string
		host                     string
		port                     int
		username, password, fail string
	}{
		{uri: "clickhouse://user:pw@ch.example:8124/db", host: "ch.example", port: 8124, username: "user", password: "pw"},
		{uri: "clickhouse://ch.example", host: "ch.example"},
		{uri: "ClickHouse://CH.Example/", host: "ch.example"},
		{uri: "clickhouse://", host: "localhost"},
		{uri: "clickhouse:///db", host: "localhost"},
		{uri: "clickhouse://user@h", host: "h", username: "user"},
		{uri: "clickhouse://user:@h", host: "h", username: "user"},
		{uri: "clickhouse://:pw@h", host: "h", password: "pw"},
		{uri: "clickhouse://u:p@h:8123/db?secure=true#x", host: "h", port: 8123, username: "u", password: "p"},
		// Escapes, and what only looks like one.
		{uri: "clickhouse://us%40er:p%40ss%3Aw%2Fo%23rd%3F%25@h/db", host: "h", username: "us@er", password: "p@ss:w/o#rd?%"},
		{uri: "clickhouse://u:100%@h", host: "h", username: "u", password: "100%"},
		{uri: "clickhouse://u:%zz%4@h", host: "h", username: "u", password: "%zz%4"},
		{uri: "clickhouse://u:a+b c@h", host: "h", username: "u", password: "a+b c"},
		{uri: "clickhouse://u:h%C3%A9%F0%9F%A6%86@h", host: "h", username: "u", password: "hé🦆"},
		{uri: "clickhouse://u:a@b:c@h:1", host: "h", port: 1, username: "u", password: "a@b:c"},
		// Addresses.
		{uri: "clickhouse://u:p@[::1]:8123/db", host: "::1", port: 8123, username: "u", password: "p"},
		{uri: "clickhouse://[fe80::1]", host: "fe80::1"},
		{uri: "clickhouse://10.0.0.1:65535", host: "10.0.0.1", port: 65535},
		// Mistakes.
		{uri: "", fail: "does not begin with clickhouse://"},
		{uri: "s3cret", fail: "does not begin with clickhouse://"},
		{uri: "postgres://u:s3cret@h/db", fail: "does not begin with clickhouse://"},
		{uri: "clickhouse:u:s3cret@h", fail: "does not begin with clickhouse://"},
		{uri: "clickhouse://u:s3cret@h:port/db", fail: "port is not a number between 1 and 65535"},
		{uri: "clickhouse://u:s3cret@h:0", fail: "port is not a number between 1 and 65535"},
		{uri: "clickhouse://u:s3cret@h:65536", fail: "port is not a number between 1 and 65535"},
		{uri: "clickhouse://h:s3cret", fail: "port is not a number between 1 and 65535"},
		{uri: "clickhouse://u:s3/cret@h/db", fail: `must be written as %2F`},
		{uri: "clickhouse://u:s3#cret@h/db", fail: `must be written as %2F`},
	} {
		got, err := chconn.FromURI(tc.uri)
		if tc.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fail) || strings.Contains(err.Error(), "cret") {
				t.Errorf("%s: %v, want ...%s", tc.uri, err, tc.fail)
			}
			continue
		}
		want := chconn.Config{Protocol: chconn.HTTP, Host: tc.host, Port: tc.port, Username: tc.username, Password: tc.password}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", tc.uri, got, err, want)
		}
	}
}
