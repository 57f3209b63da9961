package statestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// bothProtocols runs a test over the native protocol and over HTTP.
func bothProtocols(t *testing.T, test func(t *testing.T, protocol chconn.Protocol)) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			test(t, protocol)
		})
	}
}

// A where is a kind of table to keep entries in, and a way to talk about it.
type where struct {
	protocol           chconn.Protocol
	layout, lockLayout statestore.Layout
}

// everywhere runs a test on both layouts of the state table, on both of the lock table, over both protocols.
func everywhere(t *testing.T, test func(t *testing.T, w where)) {
	for _, protocol := range chconn.Protocols() {
		for _, layout := range statestore.TableLayouts() {
			for _, lockLayout := range statestore.LockLayouts() {
				t.Run(fmt.Sprintf("%s, layout %s, lock_layout %s", protocol, layout, lockLayout), func(t *testing.T) {
					t.Parallel()
					test(t, where{protocol, layout, lockLayout})
				})
			}
		}
	}
}

// open opens a store on the shared server, with a short settle: on Meltano's lock tables, every lock waits for one.
func (w where) open(t *testing.T) *statestore.Store {
	t.Helper()
	s, err := statestore.Open(statestore.Config{
		Connection: connection(acctest.Server(t), w.protocol), Lock: statestore.LockOptions{Settle: 300 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// table makes a state table in a database of its own and returns the address of an entry in it.
func (w where) table(t *testing.T, s *statestore.Store) statestore.Address {
	t.Helper()
	at := statestore.Address{Database: acctest.Database(t), Table: "state", StateID: "dev:tap-a-to-target-b"}
	spec := statestore.TableSpec{Database: at.Database, Name: at.Table, Layout: w.layout, LockLayout: w.lockLayout}
	if _, _, err := s.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return at
}

// insert adds a row as somebody does who stamps versions by himself: at an expression of a DateTime64(6).
func (w where) insert(t *testing.T, at statestore.Address, completed, instant string) {
	t.Helper()
	columns := map[statestore.Layout]string{
		statestore.LayoutVersioned: "version) SELECT ?, ?, toUnixTimestamp64Micro(" + instant + ")",
		statestore.LayoutMeltano:   "updated_at) SELECT ?, ?, " + instant,
	}
	exec(t, acctest.Conn(t), "INSERT INTO "+quoted(at)+" (state_id, completed_state, "+columns[w.layout], at.StateID, completed)
}

// connection is how to reach an endpoint over a protocol.
func connection(e acctest.Endpoint, protocol chconn.Protocol) chconn.Config {
	port := e.NativePort
	if protocol == chconn.HTTP {
		port = e.HTTPPort
	}
	return chconn.Config{Host: e.Host, Port: port, Protocol: protocol, Username: e.Username, Password: e.Password, Version: "test"}
}

// open opens a store on the shared server.
func open(t *testing.T, protocol chconn.Protocol) *statestore.Store {
	t.Helper()
	s, err := statestore.Open(statestore.Config{Connection: connection(acctest.Server(t), protocol)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// table makes a table of the default layouts.
func table(t *testing.T, s *statestore.Store) statestore.Address {
	t.Helper()
	return where{}.table(t, s)
}

func text(s string) *string { return &s }

// locks counts the claims that are left in the lock table.
func locks(t *testing.T, at statestore.Address) (n uint64) {
	t.Helper()
	row := acctest.Conn(t).QueryRow(context.Background(), "SELECT count() FROM "+at.Database+"."+at.Table+"_lock")
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEntryLife(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx := t.Context()
		s := w.open(t)
		at := w.table(t, s)
		if _, err := s.Read(ctx, at); !errors.Is(err, statestore.ErrNotFound) {
			t.Fatalf("read of nothing: %v", err)
		}
		created, err := s.Create(ctx, at, text(`{"singer_state": {"a": 1}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		read, err := s.Read(ctx, at)
		if err != nil || read.Version != created.Entry.Version || *read.Completed != `{"singer_state": {"a": 1}}` || read.Partial != nil ||
			!read.UpdatedAt.Equal(created.Entry.UpdatedAt) {
			t.Fatalf("read %+v, %v after create %+v", read, err, created)
		}
		var exists *statestore.ExistsError
		if _, err := s.Create(ctx, at, text(`{"singer_state": {"a": 1}}`), nil); !errors.As(err, &exists) {
			t.Fatalf("second create: %v", err)
		}
		updated, err := s.Update(ctx, at, read.Version, statestore.Set(text(`{"singer_state": {"a": 2}}`)), statestore.Keep())
		if err != nil || updated.Entry.Version <= read.Version {
			t.Fatalf("update: %+v, %v", updated, err)
		}
		var moved *statestore.MovedError
		if _, err := s.Update(ctx, at, read.Version, statestore.Set(text(`{}`)), statestore.Keep()); !errors.As(err, &moved) ||
			moved.Found != updated.Entry.Version {
			t.Fatalf("stale update: %v", err)
		}
		if _, err := s.Delete(ctx, at, read.Version); !errors.As(err, &moved) {
			t.Fatalf("stale delete: %v", err)
		}
		if _, err := s.Delete(ctx, at, updated.Entry.Version); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Delete(ctx, at, updated.Entry.Version); err != nil {
			t.Fatalf("second delete: %v", err)
		}
		if _, err := s.Read(ctx, at); !errors.Is(err, statestore.ErrNotFound) {
			t.Fatalf("read after delete: %v", err)
		}
		again, err := s.Create(ctx, at, text(`{"singer_state": {}}`), text(strings.Repeat(" ", 3)+`{"singer_state": {"b": null}}`))
		if err != nil || again.Entry.Version <= updated.Entry.Version {
			t.Fatalf("create over a tombstone: %+v, %v", again, err)
		}
		if n := locks(t, at); n != 0 {
			t.Fatalf("%d claims left", n)
		}
	})
}
