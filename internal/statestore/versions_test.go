package statestore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestVersionsTied: a tombstone and another row of the same version are stored, by somebody who stamps versions by himself.
// Which of the two counts is what FINAL shows, for every verb; so it is with the least version there is.
func TestVersionsTied(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		for _, version := range []uint64{0, 1, 1 << 50} {
			for name, deleted := range map[string][]uint8{"row": {0}, "tombstone": {1}, "row last": {1, 0}, "tombstone last": {0, 1}} {
				t.Run(fmt.Sprintf("%s, version %d", name, version), func(t *testing.T) { testVersionsTied(t, protocol, version, deleted) })
			}
		}
	})
}

func testVersionsTied(t *testing.T, protocol chconn.Protocol, version uint64, deleted []uint8) {
	ctx, s, conn := t.Context(), open(t, protocol), acctest.Conn(t)
	at := table(t, s)
	// Merges would leave one of the two.
	exec(t, conn, "SYSTEM STOP MERGES "+quoted(at))
	address := func(verb string) statestore.Address {
		at := at
		at.StateID = verb
		for _, d := range deleted {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state, version, is_deleted) VALUES (?, ?, ?, ?)", verb, `{"a": 1}`, version, d)
		}
		return at
	}
	payload := text(`{"b": 2}`)

	at = address("read")
	var shown uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM "+quoted(at)+" FINAL").Scan(&shown); err != nil {
		t.Fatal(err)
	}
	live := shown == 1
	if _, err := s.Read(ctx, at); errors.Is(err, statestore.ErrNotFound) == live {
		t.Errorf("read: %v, want it live: %t", err, live)
	}

	at = address("create")
	created, err := s.Create(ctx, at, payload, nil)
	if exists := errors.As(err, new(*statestore.ExistsError)); exists != live || !live && (err != nil || created.Entry.Version <= version) {
		t.Errorf("create: %+v, %v, want it live: %t", created, err, live)
	}

	at = address("update")
	updated, err := s.Update(ctx, at, version, statestore.Set(payload), statestore.Keep())
	if moved := errors.As(err, new(*statestore.MovedError)); moved == live || live && (err != nil || updated.Entry.Version <= version) {
		t.Errorf("update: %+v, %v, want it live: %t", updated, err, live)
	}

	at = address("delete")
	if deleted, err := s.Delete(ctx, at, version); err != nil || deleted.Left {
		t.Errorf("delete: %+v, %v", deleted, err)
	}
	if _, err := s.Read(ctx, at); !errors.Is(err, statestore.ErrNotFound) {
		t.Errorf("read after delete: %v", err)
	}
	var newest uint64
	if err := conn.QueryRow(ctx, "SELECT max(version) FROM "+quoted(at)+" WHERE state_id = 'delete'").Scan(&newest); err != nil {
		t.Fatal(err)
	}
	if (newest > version) != live {
		t.Errorf("version %d after delete, want it written: %t", newest, live)
	}
}

// TestVersionZero: an entry has the least version there is, which looks like none.
func TestVersionZero(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, s := t.Context(), w.open(t)
		at := w.table(t, s)
		address := func(verb string) statestore.Address {
			at := at
			at.StateID = verb
			w.insert(t, at, `{"a": 1}`, "toDateTime64(0, 6, 'UTC')")
			return at
		}
		if found, err := s.Read(ctx, address("read")); err != nil || found.Version != 0 {
			t.Errorf("read: %+v, %v", found, err)
		}
		if created, err := s.Create(ctx, address("create"), text(changed), nil); !errors.As(err, new(*statestore.ExistsError)) {
			t.Errorf("create: %+v, %v", created, err)
		}
		updated, err := s.Update(ctx, address("update"), 0, statestore.Set(text(changed)), statestore.Keep())
		if err != nil || updated.Entry.Version == 0 {
			t.Errorf("update: %+v, %v", updated, err)
		}
		at = address("delete")
		if deleted, err := s.Delete(ctx, at, 0); err != nil || deleted.Left {
			t.Errorf("delete: %+v, %v", deleted, err)
		}
		if found, err := s.Read(ctx, at); !errors.Is(err, statestore.ErrNotFound) {
			t.Errorf("read after delete: %+v, %v", found, err)
		}
	})
}

// TestVersionsTorn: a row comes, or the newest one goes, between the reading of the versions and that of the payloads. Both
// are read again, and nothing is decided on halves that do not fit together.
func TestVersionsTorn(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		c, conn := newCrowd(t, acctest.Server(t), acctest.Database(t), protocol, statestore.LockOptions{}), acctest.Conn(t)
		at, first, call := c.entry(0), c.version(t, 0), c.update(t, 0, changed)
		second := first + 1
		comes := func() {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state, version) VALUES (?, ?, ?)", at.StateID, `{"b": 2}`, second)
		}
		goes := func() {
			left := uint64(1)
			for left > 0 { // a plain DELETE leaves a row behind now and then
				exec(t, conn, "DELETE FROM "+quoted(at)+" WHERE state_id = ? AND version = ? SETTINGS lightweight_deletes_sync = 2", at.StateID, second)
				row := conn.QueryRow(t.Context(), "SELECT count() FROM "+quoted(at)+" WHERE state_id = ? AND version = ?", at.StateID, second)
				if err := row.Scan(&left); err != nil {
					t.Fatal(err)
				}
			}
		}
		update := func(meanwhile func()) error {
			c.log.stop("entry.update.newest")
			done := make(chan error, 1)
			go func() {
				done <- call(context.Background())
			}()
			c.log.await(t, done)
			meanwhile()
			close(c.log.goOn)
			return <-done
		}
		var moved *statestore.MovedError
		if err := update(comes); !errors.As(err, &moved) || moved.Found != second || c.log.count("entry.update.write") != 0 {
			t.Errorf("one came: %v after %v, want that version %d is there", err, c.log.since(), second)
		}
		if err := update(goes); err != nil || c.log.count("entry.update.write") != 1 {
			t.Errorf("the newest went: %v after %v, want it written at once", err, c.log.since())
		}
	})
}

// TestVersionsTornForever: rows come whenever the versions were read. The write gives up, says why, and has written nothing.
func TestVersionsTornForever(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		c, conn := newCrowd(t, acctest.Server(t), acctest.Database(t), protocol, statestore.LockOptions{}), acctest.Conn(t)
		at, first, call := c.entry(0), c.version(t, 0), c.update(t, 0, changed)
		c.log.stop("entry.update.newest")
		done := make(chan error, 1)
		go func() {
			done <- call(context.Background())
		}()
		for version := first + 1; ; version++ {
			stopped, goOn := c.log.stopped, c.log.goOn
			select {
			case <-stopped:
				exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state, version) VALUES (?, ?, ?)", at.StateID, `{"b": 2}`, version)
				c.log.stop("entry.update.newest")
				close(goOn)
				continue
			case err := <-done:
				c.log.stop("")
				if err == nil || !strings.Contains(err.Error(), "all the time") || !strings.Contains(err.Error(), at.StateID) {
					t.Errorf("got %v, want that it is written all the time", err)
				}
			}
			now, err := c.store.Read(t.Context(), at)
			if err != nil || now.Version != version-1 || *now.Completed != `{"b": 2}` || version-1 != first+5 {
				t.Errorf("stored %+v, %v, want version %d, the fifth that came", now, err, first+5)
			}
			if n := locks(t, at); n != 0 {
				t.Errorf("%d claims left", n)
			}
			return
		}
	})
}

// TestStatements counts what one call sends. The payload that is stored is read where it matters, and nowhere else. (On a busy
// server a release may take a second try.)
func TestStatements(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		c := newCrowd(t, acctest.Server(t), acctest.Database(t), protocol, statestore.LockOptions{})
		ctx, at, payload := t.Context(), c.at, text(changed)
		var version uint64
		written := func(w statestore.Written, err error) error {
			version = w.Entry.Version
			return err
		}
		locked := func(inside ...string) []string {
			return slices.Concat([]string{"lock.claim", "lock.read"}, inside, []string{"lock.release", "lock.left"})
		}
		for _, tt := range []struct {
			name string
			call func() error
			want []string
		}{
			{
				"create", func() error { return written(c.store.Create(ctx, at, payload, nil)) },
				locked("entry.create.newest", "entry.create.write", "entry.create.verify"),
			},
			{"seed over it", func() error {
				_, err := c.store.Seed(ctx, at, payload, nil)
				if !errors.As(err, new(*statestore.ExistsError)) {
					return fmt.Errorf("want that it exists: %w", err)
				}
				return nil
			}, locked("entry.create.newest", "entry.create.live")},
			{"read", func() error { _, err := c.store.Read(ctx, at); return err }, []string{"entry.read"}},
			{"update", func() error {
				return written(c.store.Update(ctx, at, version, statestore.Set(text(`{"b": 2}`)), statestore.Keep()))
			}, locked("entry.update.newest", "entry.update.live", "entry.update.write", "entry.update.verify")},
			{
				"delete", func() error { _, err := c.store.Delete(ctx, at, version); return err },
				locked("entry.delete.newest", "entry.delete.write", "entry.delete.verify"),
			},
			{"delete of nothing", func() error { _, err := c.store.Delete(ctx, at, version); return err }, locked("entry.delete.newest")},
			{
				"create over a tombstone", func() error { return written(c.store.Create(ctx, at, payload, nil)) },
				locked("entry.create.newest", "entry.create.write", "entry.create.verify"),
			},
		} {
			c.log.stop("")
			if err := tt.call(); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			sent := c.log.since()
			for n := len(sent); n >= 4 && slices.Equal(sent[n-2:], sent[n-4:n-2]); n = len(sent) {
				sent = sent[:n-2]
			}
			if !slices.Equal(sent, tt.want) {
				t.Errorf("%s sent %v, want %v", tt.name, sent, tt.want)
			}
		}
	})
}
