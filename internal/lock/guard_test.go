package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// TestMergeKeepsTheirClaim: on a lock table that Meltano made, a merge keeps one claim of a state_id. It has to be that of
// the live client that nothing fences, although ours was put later: ours are dated back.
func TestMergeKeepsTheirClaim(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			f, db := newFixture(t, false), connect(t, protocol)
			const theirs = "44444444-4444-4444-8444-444444444444"
			err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
				// A claim that was on its way for 5 s: older than ours by its real time, younger by its locked_at.
				f.claim(t, "x", theirs, 5)
				f.exec(t, "OPTIMIZE TABLE "+f.lock.String()+" FINAL")
				if n := f.count(t, "SELECT count() FROM "+f.lock.String()+" WHERE lock_id = '"+theirs+"'"); n != 1 || f.claims(t) != 1 {
					t.Fatalf("the merge left %d claims, %d of them theirs", f.claims(t), n)
				}
				return held.Write(ctx, f.write(1, 0, "x"))
			})
			if !errors.As(err, new(*lock.LostError)) {
				t.Errorf("got %v, want a *LostError", err)
			}
			if n := f.count(t, "SELECT count() FROM "+f.state.String()); n != 0 {
				t.Error("written although the merge had taken the claim")
			}
			if n := f.claims(t); n != 1 {
				t.Errorf("%d claims, want theirs", n)
			}
		})
	}
}

// TestOldClaimWritesNothing: the fence does not build on a claim that is older than nine tenths of the lease, although
// nobody has swept it yet. Where claims are backdated, they count as that much younger: 264 s are more than nine tenths of
// what is left of the lease there.
func TestOldClaimWritesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		for age, fresh := range map[int]bool{264: true, 285: false} {
			id := fmt.Sprint(age)
			err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{id}, func(ctx context.Context, held *lock.Held) error {
				var ours string
				if err := f.sql.QueryRow(ctx, "SELECT lock_id FROM "+f.lock.String()+" WHERE state_id = ?", id).Scan(&ours); err != nil {
					return err
				}
				f.exec(t, "DELETE FROM "+f.lock.String()+" WHERE 1")
				f.claim(t, id, ours, age)
				return held.Write(ctx, f.write(1, 0, id))
			})
			if errors.As(err, new(*lock.LostError)) == fresh || fresh && err != nil {
				t.Errorf("%d s old: got %v, want a *LostError: %t", age, err, !fresh)
			}
			if n := f.count(t, "SELECT count() FROM "+f.state.String()+" WHERE state_id = '"+id+"'"); (n == 1) != fresh {
				t.Errorf("%d s old: %d rows written", age, n)
			}
		}
	})
}

// TestLateRenewal: a renewal that reaches the server after the lease has ended does not bring the claim back.
func TestLateRenewal(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		var late, read sync.Once
		isLate := false
		answered := make(chan struct{})
		db.onStatement(func(operation string) {
			switch {
			case operation == "lock.renew":
				late.Do(func() {
					for f.count(t, "SELECT count() FROM "+f.lock.String()+" WHERE locked_at >= now() - 12") > 0 {
						time.Sleep(50 * time.Millisecond)
					}
					isLate = true
				})
			case operation == "lock.read" && isLate: // the renewer's, which looks what became of it
				read.Do(func() { close(answered) })
			}
		})
		err := locker(t, db, f.short()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
			<-answered
			<-ctx.Done()
			if n := f.count(t, "SELECT count() FROM "+f.lock.String()+" WHERE locked_at >= now() - 12"); n != 0 {
				t.Error("the late renewal brought the claim back")
			}
			return held.Write(context.WithoutCancel(ctx), f.write(1, 0, "x"))
		})
		if !errors.As(err, new(*lock.LostError)) {
			t.Errorf("got %v, want a *LostError", err)
		}
		if n := f.count(t, "SELECT count() FROM "+f.state.String()); n != 0 {
			t.Error("written under a lost lock")
		}
	})
}

// TestReleaseBesideAMutation: patch parts can come undone beside a plain DELETE in flight, so a release that sees one
// deletes again, plainly.
func TestReleaseBesideAMutation(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			f, db := newFixture(t, true), connect(t, protocol)
			releases := 0
			db.onStatement(func(operation string) {
				if operation != "lock.release" {
					return
				}
				if releases++; releases == 2 {
					f.exec(t, "SYSTEM START MERGES "+f.lock.String())
				}
			})
			err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(context.Context, *lock.Held) error {
				f.claim(t, "y", "44444444-4444-4444-8444-444444444444", 0)
				f.exec(t, "SYSTEM STOP MERGES "+f.lock.String())
				f.exec(t, "ALTER TABLE "+f.lock.String()+" DELETE WHERE state_id = 'y' SETTINGS mutations_sync = 0")
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"lightweight_update", "alter_update"}; !slices.Equal(db.deleteModes(), want) {
				t.Errorf("deleted by %v, want %v", db.deleteModes(), want)
			}
			if n := f.count(t, "SELECT count() FROM "+f.lock.String()+" WHERE state_id = 'x'"); n != 0 {
				t.Errorf("%d claims left", n)
			}
		})
	}
}

// TestWithdrawFails: a claimant that has to give way and cannot says until when its claim will be in the way.
func TestWithdrawFails(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, true)
			db, proxy := through(t, protocol)
			var once sync.Once
			db.onStatement(func(operation string) {
				switch operation {
				case "lock.read":
					once.Do(func() { f.claim(t, "x", "00000000-0000-0000-0000-000000000000", 0) })
				case "lock.release":
					proxy.Refuse(true)
					proxy.CutAll()
				}
			})
			err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(context.Context, *lock.Held) error {
				t.Error("held beside a smaller claim")
				return nil
			})
			var withdraw *lock.WithdrawError
			if !errors.As(err, &withdraw) {
				t.Fatalf("got %v, want a *WithdrawError", err)
			}
			if left := time.Until(withdraw.Expires); left < 4*time.Minute || left > 5*time.Minute+time.Second {
				t.Errorf("expires in %s", left)
			}
			if n := f.count(t, "SELECT count() FROM "+f.lock.String()+" WHERE lock_id = '"+withdraw.LockID+"'"); n != 1 {
				t.Errorf("%d claims of the lock_id that the error names", n)
			}
		})
	}
}

// TestUnansweredInsertIsKilled loses the answer to an INSERT that goes on running on the server: a column of the table
// takes two seconds to compute. It must not land after it was given up.
func TestUnansweredInsertIsKilled(t *testing.T) {
	const slow = " ADD COLUMN slow UInt8 DEFAULT sleep(2)"
	for _, tt := range []struct {
		operation, table string
	}{{"test", "state"}, {"lock.claim", "state_lock"}} {
		for _, protocol := range chconn.Protocols() {
			t.Run(tt.operation+"/"+string(protocol), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, true)
				f.exec(t, "ALTER TABLE "+f.lock.Database+"."+tt.table+slow)
				db, proxy := through(t, protocol)
				f.loseAnswer(t, db, proxy, tt.operation, tt.table)
				err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
					if tt.operation == "lock.claim" {
						if n := f.claims(t); n != 1 {
							t.Errorf("%d claims while held", n)
						}
						return nil
					}
					return held.Write(ctx, f.write(1, 0, "x"))
				})
				if err != nil {
					t.Fatal(err)
				}
				f.exec(t, "SYSTEM FLUSH LOGS")
				var killed uint64
				row := f.sql.QueryRow(t.Context(), "SELECT count() FROM system.query_log WHERE exception_code = 394 AND query_kind = 'Insert' AND has(databases, ?)", f.lock.Database)
				if err := row.Scan(&killed); err != nil {
					t.Fatal(err)
				}
				if killed != 1 {
					t.Errorf("%d INSERTs were killed, want the one without an answer", killed)
				}
				if n := f.count(t, "SELECT count() FROM "+f.state.String()); tt.operation == "test" && n != 1 {
					t.Errorf("%d rows, want 1", n)
				}
				if n := f.claims(t); n != 0 {
					t.Errorf("%d claims left", n)
				}
			})
		}
	}
}

// loseAnswer cuts the connection while the server carries out an INSERT, in such a way that the server does not notice. Over
// HTTP it does not look; on a native connection the proxy stays connected.
func (f fixture) loseAnswer(t *testing.T, db *spy, proxy *acctest.FaultyProxy, operation, table string) {
	t.Helper()
	insert := "INSERT INTO `" + f.lock.Database + "`.`" + table + "`"
	var once atomic.Bool
	if db.protocol == chconn.Native {
		proxy.CutAfter(func(chunk []byte) bool { return bytes.Contains(chunk, []byte(insert)) && !once.Swap(true) })
		return
	}
	db.onStatement(func(sent string) {
		if sent != operation || once.Swap(true) {
			return
		}
		go func() {
			for f.count(t, "SELECT count() FROM system.processes WHERE startsWith(query, '"+insert+"')") == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			proxy.CutAll()
		}()
	})
}

// TestLateCopy: the first copy of an INSERT got no answer and was nowhere to be found. It lands just before the second, which
// finds a newer version: its own.
func TestLateCopy(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		for _, tt := range []struct {
			id      string
			version uint64
			want    error
		}{{"ours", 1, nil}, {"theirs", 2, lock.ErrMoved}} {
			db.lose = "test"
			sent := 0
			db.onStatement(func(operation string) {
				if operation != "test" {
					return
				}
				if sent++; sent == 3 { // after the first copy and the reading back
					f.exec(t, "INSERT INTO "+f.state.String()+" (state_id, version) VALUES (?, ?)", tt.id, tt.version)
				}
			})
			err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{tt.id}, func(ctx context.Context, held *lock.Held) error {
				return held.Write(ctx, f.write(1, 0, tt.id))
			})
			if !errors.Is(err, tt.want) || sent < 3 {
				t.Errorf("%s: got %v after %d statements, want %v", tt.id, err, sent, tt.want)
			}
			if n := f.count(t, "SELECT count() FROM "+f.state.String()+" WHERE state_id = '"+tt.id+"'"); n != 1 {
				t.Errorf("%s: %d rows", tt.id, n)
			}
		}
	})
}

// TestFiveContenders is 20 runs of three of ours and two of Meltano's for one lock. None of ours is inside together with
// anybody, and no update of ours is lost. (Two of Meltano's may be, on a machine that stalls one for longer than its settle.)
func TestFiveContenders(t *testing.T) {
	for _, strict := range []bool{true, false} {
		t.Run("strict="+map[bool]string{true: "true", false: "false"}[strict], func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, strict)
			options := f.quick()
			options.Settle = 700 * time.Millisecond
			t.Cleanup(func() {
				if n := f.claims(t); n != 0 {
					t.Errorf("%d claims left", n)
				}
			})
			for run := range 20 {
				t.Run(strconv.Itoa(run), func(t *testing.T) {
					t.Parallel()
					f.contend(t, options, "dev:race"+strconv.Itoa(run))
				})
			}
		})
	}
}

// contend is one run, on a state_id of its own.
func (f fixture) contend(t *testing.T, options lock.Options, id string) {
	t.Helper()
	var (
		ours, theirs atomic.Int64
		group        sync.WaitGroup
	)
	for range 3 {
		db := connect(t, chconn.Native)
		group.Go(func() {
			err := locker(t, db, options).Do(t.Context(), f.lock, []string{id}, func(ctx context.Context, held *lock.Held) error {
				if ours.Add(1) != 1 || theirs.Load() != 0 {
					t.Error("not alone inside")
				}
				seen := f.version(t, id)
				err := held.Write(ctx, f.write(seen+1, seen, id))
				if f.version(t, id) != seen+1 {
					t.Error("somebody else wrote inside")
				}
				ours.Add(-1)
				return err
			})
			if err != nil && (f.lock.Strict || !errors.As(err, new(*lock.LostError))) {
				t.Error(err)
			}
		})
	}
	for range 2 {
		conn := acctest.Conn(t)
		group.Go(func() {
			backend := meltano.New(conn, meltano.Options{
				Database: f.lock.Database, Table: "state", Settle: options.Settle, Retry: 50 * time.Millisecond, Timeout: time.Minute,
			})
			l, err := backend.AcquireLock(t.Context(), id)
			if err != nil {
				t.Error(err)
				return
			}
			theirs.Add(1)
			if f.lock.Strict && ours.Load() != 0 {
				t.Error("Meltano is inside together with ours")
			}
			theirs.Add(-1)
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func (f fixture) version(t *testing.T, id string) (version uint64) {
	t.Helper()
	if err := f.sql.QueryRow(context.Background(), "SELECT max(version) FROM "+f.state.String()+" WHERE state_id = ?", id).Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}
