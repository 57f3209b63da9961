package lock_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// through connects through a proxy that can fail.
func through(t *testing.T, protocol chconn.Protocol) (*spy, *acctest.FaultyProxy) {
	t.Helper()
	e := acctest.Server(t)
	target := e.NativeAddr()
	if protocol == chconn.HTTP {
		target = e.HTTPAddr()
	}
	proxy := acctest.Proxy(t, target)
	return connectTo(t, chconn.Config{
		Host: proxy.Host, Port: proxy.Port, Protocol: protocol, Username: e.Username, Password: e.Password, Version: "test", DialTimeout: 2 * time.Second,
	}), proxy
}

// TestLostAnswers loses the answer to one statement of a cycle. The statement was carried out, and the cycle
// finds that out.
func TestLostAnswers(t *testing.T) {
	for _, lost := range []string{"lock.claim", "lock.read", "test", "lock.release", "lock.left"} {
		t.Run(lost, func(t *testing.T) {
			everywhere(t, func(t *testing.T, f fixture, direct *spy) {
				db, proxy := through(t, direct.protocol)
				err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(context.Context, *lock.Held) error { return nil })
				if err != nil {
					t.Fatalf("before: %v", err)
				}
				var cut, armed atomic.Bool
				proxy.CutAfter(func(chunk []byte) bool {
					return armed.Load() && bytes.Contains(chunk, []byte(f.lock.Database)) && !cut.Swap(true)
				})
				db.onStatement(func(operation string) {
					if operation == lost {
						armed.Store(true)
					}
				})
				err = locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
					return held.Write(ctx, f.write(1, 0, "x"))
				})
				if err != nil {
					t.Fatal(err)
				}
				if !cut.Load() {
					t.Error("no answer was lost")
				}
				if n := f.count(t, "SELECT count() FROM "+f.state.String()); n != 1 {
					t.Errorf("%d rows, want 1", n)
				}
				if n := f.claims(t); n != 0 {
					t.Errorf("%d claims left", n)
				}
			})
		})
	}
}

// TestServerGone loses the answer to a write and finds nobody to ask: the outcome is reported as uncertain.
func TestServerGone(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, true)
			db, proxy := through(t, protocol)
			db.onStatement(func(operation string) {
				if operation == "test" {
					proxy.Stall(true)
					time.AfterFunc(time.Second, func() {
						proxy.Refuse(true)
						proxy.CutAll()
					})
				}
			})
			err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
				return held.Write(ctx, f.write(1, 0, "x"))
			})
			if !errors.As(err, new(*lock.UncertainError)) {
				t.Fatalf("got %v, want an *UncertainError", err)
			}
		})
	}
}
