package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options lock.Options
		want    string
	}{
		{"defaults", lock.Options{}, ""},
		{"everything set", lock.Options{Timeout: time.Minute, StaleAfter: 10 * time.Second, Settle: 2 * time.Second, RetryInterval: time.Second}, ""},
		{"negative timeout", lock.Options{Timeout: -1}, "timeout is negative"},
		{"negative settle", lock.Options{Settle: -1}, "settle is negative"},
		{"negative retry interval", lock.Options{RetryInterval: -1}, "retry_interval is negative"},
		{"lease too short", lock.Options{StaleAfter: 9 * time.Second}, "stale_after is 9s"},
		{"negative lease", lock.Options{StaleAfter: -time.Second}, "stale_after is -1s"},
		{"lease too long", lock.Options{StaleAfter: 301 * time.Second}, "stale_after is 5m1s"},
		{"settle as long as timeout", lock.Options{Settle: 10 * time.Second, Timeout: 10 * time.Second}, "settle (10s) must be shorter"},
		{"settle too long for the lease", lock.Options{Settle: 3 * time.Second, StaleAfter: 10 * time.Second}, "at most a fifth of stale_after (10s)"},
	} {
		_, err := lock.New(nil, tt.options)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
