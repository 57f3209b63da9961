package lock_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
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

// TestFailedAfterStoring: an exception does not mean that nothing was stored. A view on the table fails after
// the row is in.
func TestFailedAfterStoring(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, true)
			f.exec(t, "CREATE MATERIALIZED VIEW "+f.state.Database+".broken ENGINE = Null AS SELECT throwIf(1, 'a view that fails') FROM "+f.state.String())
			err := locker(t, connect(t, protocol), f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
				return held.Write(ctx, f.write(1, 0, "x"))
			})
			stored := f.count(t, "SELECT count() FROM "+f.state.String())
			if stored == 1 && err != nil {
				t.Errorf("the row is stored, but: %v", err)
			}
			if stored == 0 && err == nil {
				t.Error("the row is not stored, and no error")
			}
			if n := f.claims(t); n != 0 {
				t.Errorf("%d claims left", n)
			}
		})
	}
}

// TestRefusedAndDeaf: a rival makes the fence refuse, and the answer to the question who it is is lost.
func TestRefusedAndDeaf(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, true)
			db, proxy := through(t, protocol)
			options := f.quick()
			options.Timeout = 3 * time.Second
			err := locker(t, db, options).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
				f.claim(t, "x", "ffffffff-0000-4000-8000-000000000001", 0)
				db.onStatement(func(operation string) {
					if operation == "lock.read" {
						proxy.Refuse(true)
						proxy.CutAll()
						time.AfterFunc(5*time.Second, func() { proxy.Refuse(false) })
					}
				})
				return held.Write(ctx, f.write(1, 0, "x"))
			})
			if err == nil {
				t.Fatal("no error")
			}
			if n := f.count(t, "SELECT count() FROM "+f.state.String()); n != 0 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// TestCancelledBehindARenewal: a renewal that waits for a deaf server does not keep a cancelled write waiting.
func TestCancelledBehindARenewal(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, true)
			db, proxy := through(t, protocol)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			renewing := make(chan struct{})
			db.onStatement(func(operation string) {
				if operation == "lock.renew" {
					proxy.Stall(true)
					close(renewing)
					db.onStatement(nil)
				}
			})
			var began time.Time
			err := locker(t, db, f.short()).Do(ctx, f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
				<-renewing
				began = time.Now()
				cancel()
				return held.Write(ctx, f.write(1, 0, "x"))
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("took %s to give up", took)
			}
		})
	}
}

// TestProfileFixesDeletes releases also for a user whose profile fixes how rows are deleted.
func TestProfileFixesDeletes(t *testing.T) {
	server := acctest.PrivateServer(t, embedded.Options{Users: []embedded.User{
		{Name: "fixed", Settings: map[string]string{"lightweight_delete_mode": "alter_update"}, Fixed: []string{"lightweight_delete_mode"}},
	}})
	e := acctest.EndpointOf(server)
	f := newFixtureOn(t, e, true)
	db := connectTo(t, chconn.Config{Host: e.Host, Port: e.NativePort, Protocol: chconn.Native, Username: "fixed", Version: "test"})
	if err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(context.Context, *lock.Held) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n := f.claims(t); n != 0 {
		t.Errorf("%d claims left", n)
	}
}

// TestTooManyParts: a table that takes no more parts is tried again until merges have caught up, and reported if they do not.
func TestTooManyParts(t *testing.T) {
	for _, tt := range []struct{ table, operation string }{{"state", "test"}, {"state_lock", "lock.claim"}} {
		for _, protocol := range chconn.Protocols() {
			t.Run(tt.table+"/"+string(protocol), func(t *testing.T) {
				t.Parallel()
				f, db := newFixture(t, true), connect(t, protocol)
				table := f.lock.Database + "." + tt.table
				f.claim(t, "other", "44444444-4444-4444-8444-444444444444", 0)
				f.exec(t, "INSERT INTO "+f.state.String()+" (state_id) VALUES ('other')")
				f.exec(t, "ALTER TABLE "+table+" MODIFY SETTING parts_to_throw_insert = 1, parts_to_delay_insert = 0")
				write := func(options lock.Options) error {
					return locker(t, db, options).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
						return held.Write(ctx, f.write(1, 0, "x"))
					})
				}
				var serverErr *chconn.ServerError
				if err := write(impatient()); !errors.As(err, &serverErr) || serverErr.Code != chconn.CodeTooManyParts {
					t.Errorf("got %v, want the server's error", err)
				}
				tries := 0
				db.onStatement(func(operation string) {
					if operation != tt.operation {
						return
					}
					if tries++; tries == 3 {
						f.exec(t, "ALTER TABLE "+table+" MODIFY SETTING parts_to_throw_insert = 3000")
					}
				})
				if err := write(f.quick()); err != nil {
					t.Error(err)
				}
				if n := f.count(t, "SELECT count() FROM "+f.state.String()+" WHERE state_id = 'x'"); n != 1 || tries < 3 {
					t.Errorf("%d rows after %d tries", n, tries)
				}
				if n := f.claims(t); n != 1 {
					t.Errorf("%d claims, want that of another", n)
				}
			})
		}
	}
}

// TestLongNames locks and releases state_ids that do not fit into the text of a statement.
func TestLongNames(t *testing.T) {
	f := newFixture(t, true)
	ids := make([]string, 300)
	for i := range ids {
		ids[i] = strings.Repeat(`\'`, 500) + strconv.Itoa(i)
	}
	err := locker(t, connect(t, chconn.Native), f.quick()).Do(t.Context(), f.lock, ids, func(ctx context.Context, held *lock.Held) error {
		if n := f.claims(t); n != 300 {
			t.Errorf("%d claims", n)
		}
		return held.Write(ctx, f.write(1, 0, ids...))
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := f.claims(t); n != 0 {
		t.Errorf("%d claims left", n)
	}
}
