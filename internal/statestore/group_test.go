package statestore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// statements is a log of the statements of a store. It can stop the store after one of them.
type statements struct {
	mu  sync.Mutex
	all []string
	// stopAfter is the operation after whose next statement the store stops, and stopped is closed, until goOn is.
	stopAfter     string
	stopped, goOn chan struct{}
}

func (*statements) Enabled(context.Context, slog.Level) bool { return true }

func (l *statements) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "operation" {
			return true
		}
		l.mu.Lock()
		l.all = append(l.all, a.Value.String())
		stop, stopped, goOn := a.Value.String() == l.stopAfter, l.stopped, l.goOn
		if stop {
			l.stopAfter = ""
		}
		l.mu.Unlock()
		if stop {
			close(stopped)
			<-goOn
		}
		return false
	})
	return nil
}

func (l *statements) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *statements) WithGroup(string) slog.Handler      { return l }

// stop makes the store stop after the next such statement.
func (l *statements) stop(operation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.stopAfter, l.stopped, l.goOn = nil, operation, make(chan struct{}), make(chan struct{})
}

// await waits until the store has stopped while a call is under way, which sends its error when it has ended.
func (l *statements) await(t *testing.T, call <-chan error) {
	t.Helper()
	select {
	case <-l.stopped:
	case err := <-call:
		t.Fatalf("the call has ended (%v) after %v", err, l.since())
	}
}

// since lists the operations since stop.
func (l *statements) since() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

// count is how many statements of an operation there were since stop.
func (l *statements) count(operation string) (n int) {
	for _, sent := range l.since() {
		if sent == operation {
			n++
		}
	}
	return n
}

// A crowd is ten calls on entries of one table that are in flight together.
type crowd struct {
	log   *statements
	store *statestore.Store
	at    statestore.Address
}

const crowdSize = 10

// newCrowd makes a table in which the ten entries are live.
func newCrowd(t *testing.T, e acctest.Endpoint, database string, protocol chconn.Protocol, opts statestore.LockOptions) *crowd {
	t.Helper()
	c := &crowd{log: &statements{}}
	var err error
	c.store, err = statestore.Open(statestore.Config{Connection: connection(e, protocol), Logger: slog.New(c.log), Lock: opts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.store.Close(context.Background()) })
	c.at = statestore.Address{Database: database, Table: "state", StateID: "dev:first"}
	if _, _, err := c.store.CreateTable(t.Context(), statestore.TableSpec{Database: database, Name: c.at.Table, CreateDatabase: true}); err != nil {
		t.Fatal(err)
	}
	for i := range crowdSize {
		if _, err := c.store.Create(t.Context(), c.entry(i), text(`{"singer_state": {"n": 0}}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *crowd) entry(i int) statestore.Address {
	at := c.at
	at.StateID = fmt.Sprintf("dev:%d", i)
	return at
}

// run starts a call that keeps the lane busy, then those of the ten, which wait, and then lets all go on.
func (c *crowd) run(t *testing.T, call func(i int) error) []error {
	t.Helper()
	wait := c.start(t, call)
	close(c.log.goOn)
	return wait()
}

// start is run before it lets all go on.
func (c *crowd) start(t *testing.T, call func(i int) error) (wait func() []error) {
	t.Helper()
	c.log.stop("entry.create.newest")
	errs := make([]error, crowdSize)
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, err := c.store.Create(context.Background(), c.at, text(`{"singer_state": {}}`), nil); err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-c.log.stopped
	for i := range crowdSize {
		calls.Go(func() { errs[i] = call(i) })
	}
	eventually(t, func() bool { return c.store.Waiting(c.at) == crowdSize })
	return func() []error {
		calls.Wait()
		return errs
	}
}

// version is the one of entry i that is live.
func (c *crowd) version(t *testing.T, i int) uint64 {
	t.Helper()
	entry, err := c.store.Read(t.Context(), c.entry(i))
	if err != nil {
		t.Fatal(err)
	}
	return entry.Version
}

// update makes a call on the version that is live now.
func (c *crowd) update(t *testing.T, i int, value string) func(ctx context.Context) error {
	t.Helper()
	version := c.version(t, i)
	return func(ctx context.Context) error {
		_, err := c.store.Update(ctx, c.entry(i), version, statestore.Set(text(value)), statestore.Keep())
		return err
	}
}

// updates makes a call for each of the ten, to the value changed.
func (c *crowd) updates(t *testing.T) []func(ctx context.Context) error {
	t.Helper()
	all := make([]func(context.Context) error, crowdSize)
	for i := range all {
		all[i] = c.update(t, i, changed)
	}
	return all
}

// stored is the completed state of entry i.
func (c *crowd) stored(t *testing.T, i int) string {
	t.Helper()
	entry, err := c.store.Read(t.Context(), c.entry(i))
	if err != nil {
		t.Fatal(err)
	}
	return *entry.Completed
}

// eventually polls, for what another goroutine or the server does.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within 30 s")
		}
	}
}

const changed = `{"singer_state": {"n": 1}}`

// TestGroup counts the statements of ten updates in flight: those of one.
func TestGroup(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		c := newCrowd(t, acctest.Server(t), acctest.Database(t), protocol, statestore.LockOptions{})
		updates := make([]func(context.Context) error, crowdSize)
		for i := range updates {
			updates[i] = c.update(t, i, fmt.Sprintf(`{"singer_state": {"n": 1%d}}`, i))
		}
		for i, err := range c.run(t, func(i int) error { return updates[i](t.Context()) }) {
			if want := fmt.Sprintf(`{"singer_state": {"n": 1%d}}`, i); err != nil || c.stored(t, i) != want {
				t.Errorf("entry %d: %v, stored %s", i, err, c.stored(t, i))
			}
		}
		sent := c.log.since()
		count := 0
		for _, operation := range sent {
			if operation != "entry.read" {
				count++
			}
		}
		if count != 15 { // seven of the first call, which creates, and eight of the group, which looks at payloads
			t.Errorf("%d statements: %v", count, sent)
		}
		if n := locks(t, c.at); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestGroupBusy: one of ten is locked by another client. The others do not wait for it, and it is written in the end.
func TestGroupBusy(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{RetryInterval: 50 * time.Millisecond})
	exec := func(text string) {
		t.Helper()
		if err := acctest.Conn(t).Exec(t.Context(), fmt.Sprintf(text, c.at.Database+".state_lock")); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO %s (state_id, lock_id) VALUES ('dev:3', '11111111-1111-4111-8111-111111111111')")
	updates := c.updates(t)
	others := make(chan error, crowdSize)
	wait := c.start(t, func(i int) error {
		err := updates[i](t.Context())
		if i != 3 {
			others <- err
		}
		return err
	})
	close(c.log.goOn)
	for range crowdSize - 1 {
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	if n := c.log.count("entry.update.write"); n != 1 {
		t.Errorf("%d INSERTs for the nine others, which go on together", n)
	}
	if got := c.stored(t, 3); got == changed {
		t.Error("the entry was written although another client holds its lock")
	}
	exec("DELETE FROM %s WHERE lock_id = '11111111-1111-4111-8111-111111111111'")
	if err := wait()[3]; err != nil || c.stored(t, 3) != changed {
		t.Errorf("the busy one: %v, stored %s", err, c.stored(t, 3))
	}
	if n := locks(t, c.at); n != 0 {
		t.Errorf("%d claims left", n)
	}
}

// TestGroupBusyTimesOut: the one that stays locked fails, naming the holder, and the others do not.
func TestGroupBusyTimesOut(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.HTTP, statestore.LockOptions{Timeout: 1500 * time.Millisecond, RetryInterval: 50 * time.Millisecond})
	err := acctest.Conn(t).Exec(t.Context(), "INSERT INTO "+c.at.Database+".state_lock (state_id, lock_id) VALUES ('dev:7', '11111111-1111-4111-8111-111111111111')")
	if err != nil {
		t.Fatal(err)
	}
	updates := c.updates(t)
	for i, err := range c.run(t, func(i int) error { return updates[i](t.Context()) }) {
		var busy *statestore.BusyError
		switch {
		case i != 7 && (err != nil || c.stored(t, i) != changed):
			t.Errorf("entry %d: %v, stored %s", i, err, c.stored(t, i))
		case i == 7 && (!errors.As(err, &busy) || busy.StateID != "dev:7" || busy.LockID == ""):
			t.Errorf("the busy one: %v", err)
		}
	}
}

// TestGroupMoved: one of ten was changed by a pipeline, and one is gone. Those two fail.
func TestGroupMoved(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		c := newCrowd(t, acctest.Server(t), acctest.Database(t), protocol, statestore.LockOptions{})
		updates := c.updates(t)
		for _, text := range []string{
			`INSERT INTO %s (state_id, completed_state) VALUES ('dev:4', '{"singer_state": {"theirs": 1}}')`,
			`DELETE FROM %s WHERE state_id = 'dev:5'`,
		} {
			if err := acctest.Conn(t).Exec(t.Context(), fmt.Sprintf(text, c.at.Database+".state")); err != nil {
				t.Fatal(err)
			}
		}
		for i, err := range c.run(t, func(i int) error { return updates[i](t.Context()) }) {
			var moved *statestore.MovedError
			switch i {
			case 4:
				if !errors.As(err, &moved) || moved.Gone || moved.Address != c.entry(i) || c.stored(t, i) != `{"singer_state": {"theirs": 1}}` {
					t.Errorf("the moved one: %v, stored %s", err, c.stored(t, i))
				}
			case 5:
				if !errors.As(err, &moved) || !moved.Gone {
					t.Errorf("the one that is gone: %v", err)
				}
			default:
				if err != nil || c.stored(t, i) != changed {
					t.Errorf("entry %d: %v, stored %s", i, err, c.stored(t, i))
				}
			}
		}
	})
}

// TestGroupFuture: one of ten has a version from the future. Its successor lies there too, and the others' do not.
func TestGroupFuture(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{})
	err := acctest.Conn(t).Exec(t.Context(), "INSERT INTO "+c.at.Database+".state (state_id, completed_state, version) "+
		`SELECT 'dev:2', '{"singer_state": {}}', toUnixTimestamp64Micro(now64(6) + INTERVAL 1 HOUR)`)
	if err != nil {
		t.Fatal(err)
	}
	updates := c.updates(t)
	for i, err := range c.run(t, func(i int) error { return updates[i](t.Context()) }) {
		entry, readErr := c.store.Read(t.Context(), c.entry(i))
		ahead := time.Until(time.UnixMicro(int64(entry.Version))) > 50*time.Minute
		if err != nil || readErr != nil || *entry.Completed != changed || ahead != (i == 2) {
			t.Errorf("entry %d: %v, %v, version %d", i, err, readErr, entry.Version)
		}
	}
}

// TestGroupTooManyParts: a lock table that takes no more parts for a moment is waited for, also by a lone entry.
func TestGroupTooManyParts(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{RetryInterval: 50 * time.Millisecond})
	alter := func(limit int) {
		if err := acctest.Conn(t).Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s.state_lock MODIFY SETTING parts_to_throw_insert = %d", c.at.Database, limit)); err != nil {
			t.Error(err)
		}
	}
	update := c.update(t, 0, changed)
	if err := acctest.Conn(t).Exec(t.Context(), "INSERT INTO "+c.at.Database+".state_lock (state_id, lock_id) VALUES ('other', 'x')"); err != nil {
		t.Fatal(err)
	}
	alter(1)
	c.log.stop("none")
	done := make(chan error, 1)
	go func() { done <- update(t.Context()) }()
	eventually(t, func() bool { return len(c.log.since()) >= 3 })
	alter(3000)
	if err := <-done; err != nil || c.stored(t, 0) != changed {
		t.Errorf("got %v, stored %s", err, c.stored(t, 0))
	}
}

// TestGroupWithoutTable: that a table is gone is true for all, and found out once.
func TestGroupWithoutTable(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{})
	c.log.stop("entry.read")
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, err := c.store.Read(t.Context(), c.entry(0)); err != nil {
			t.Error(err)
		}
	})
	<-c.log.stopped
	errs := make([]error, crowdSize)
	for i := range errs {
		calls.Go(func() { _, errs[i] = c.store.Read(t.Context(), c.entry(i)) })
	}
	eventually(t, func() bool { return c.store.WaitingReads(c.at) == crowdSize })
	if err := acctest.Conn(t).Exec(t.Context(), "DROP TABLE "+c.at.Database+".state SYNC"); err != nil {
		t.Fatal(err)
	}
	close(c.log.goOn)
	calls.Wait()
	for i, err := range errs {
		if !errors.As(err, new(*statestore.NoTableError)) || !errors.Is(err, statestore.ErrNotFound) {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if n := c.log.count("entry.read"); n != 2 {
		t.Errorf("%d reads, want that of the first and one more", n)
	}
}

// TestGroupSameEntry: of two creates of one entry in flight, the second finds that it exists.
func TestGroupSameEntry(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{})
	at := c.at
	at.StateID = "dev:twice"
	exist := 0
	for i, err := range c.run(t, func(int) error {
		_, err := c.store.Create(t.Context(), at, text(changed), nil)
		return err
	}) {
		switch {
		case errors.As(err, new(*statestore.ExistsError)):
			exist++
		case err != nil:
			t.Errorf("create %d: %v", i, err)
		}
	}
	if exist != crowdSize-1 {
		t.Errorf("%d of %d creates found the entry", exist, crowdSize)
	}
	if n := c.log.count("entry.create.write"); n != 2 {
		t.Errorf("%d INSERTs, want that of the first and one more: a group has an entry once", n)
	}
}

// TestGroupCancelled: a caller that gives up before its entry was decided on leaves, and nothing is written for it.
func TestGroupCancelled(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{})
	updates := c.updates(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	left := make(chan error, 1)
	wait := c.start(t, func(i int) error {
		if i != 6 {
			return updates[i](t.Context())
		}
		err := updates[i](ctx)
		left <- err
		return err
	})
	cancel(why)
	if err := <-left; !errors.Is(err, why) { // although the lane is still busy
		t.Errorf("the cancelled one: %v", err)
	}
	close(c.log.goOn)
	for i, err := range wait() {
		if i != 6 && (err != nil || c.stored(t, i) != changed) {
			t.Errorf("entry %d: %v, stored %s", i, err, c.stored(t, i))
		}
	}
	if c.stored(t, 6) == changed {
		t.Error("written for a caller that had left")
	}
}

// TestGroupCancelledLate: a caller that gives up after its entry was decided on learns what was written.
func TestGroupCancelledLate(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{})
	updates := c.updates(t)
	ctx, cancel := context.WithCancel(t.Context())
	wait := c.start(t, func(i int) error {
		if i == 6 {
			return updates[i](ctx)
		}
		return updates[i](t.Context())
	})
	first := c.log.goOn
	c.log.stop("entry.update.write")
	close(first)
	<-c.log.stopped
	cancel()
	close(c.log.goOn)
	for i, err := range wait() {
		if err != nil || c.stored(t, i) != changed {
			t.Errorf("entry %d: %v, stored %s", i, err, c.stored(t, i))
		}
	}
}

// TestGroupKilledServer: the server dies inside of a group. Nobody is told that something was written that was not.
func TestGroupKilledServer(t *testing.T) {
	for _, operation := range []string{"lock.claim", "entry.update.newest", "entry.update.live", "entry.update.write"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			server := acctest.PrivateServer(t, embedded.Options{Dir: t.TempDir()})
			c := newCrowd(t, acctest.EndpointOf(server), "meltano", chconn.Native, statestore.LockOptions{Timeout: 2 * time.Second})
			updates := c.updates(t)
			wait := c.start(t, func(i int) error { return updates[i](t.Context()) })
			first := c.log.goOn
			c.log.stop(operation)
			close(first)
			<-c.log.stopped
			server.Kill()
			close(c.log.goOn)
			errs := wait()

			again := acctest.PrivateServer(t, server.Options)
			fresh, err := statestore.Open(statestore.Config{Connection: connection(acctest.EndpointOf(again), chconn.Native)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fresh.Close(context.Background()) }()
			for i, err := range errs {
				entry, readErr := fresh.Read(t.Context(), c.entry(i))
				if readErr != nil {
					t.Fatal(readErr)
				}
				written := strings.Contains(*entry.Completed, `"n": 1`)
				if err == nil || written != (operation == "entry.update.write") {
					t.Errorf("entry %d: %v, written: %t", i, err, written)
				}
			}
		})
	}
}
