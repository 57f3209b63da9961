package statestore_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

func TestSeed(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s := open(t, protocol)
		at := table(t, s)
		seed := text(`{"singer_state": {"a": 1}}`)

		sown, err := s.Seed(ctx, at, seed, nil)
		if err != nil || sown.TookOver || *sown.Entry.Completed != *seed {
			t.Fatalf("over nothing: %+v, %v", sown, err)
		}
		var exists *statestore.ExistsError
		if _, err := s.Seed(ctx, at, seed, nil); !errors.As(err, &exists) || exists.Version != sown.Entry.Version {
			t.Fatalf("over an entry of this store: %v", err)
		}

		exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, partial_state, completed_state) VALUES (?, NULL, ?)", at.StateID, `{"singer_state": {"a": 7}}`)
		theirs, err := s.Read(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		found, err := open(t, protocol).Seed(ctx, at, seed, nil)
		if err != nil || !found.TookOver || found.Entry.Version != theirs.Version || *found.Entry.Completed != `{"singer_state": {"a": 7}}` {
			t.Fatalf("over a pipeline's entry: %+v, %v", found, err)
		}

		if deleted, err := s.Delete(ctx, at, theirs.Version); err != nil || deleted.Left {
			t.Fatalf("delete: %+v, %v", deleted, err)
		}
		again, err := open(t, protocol).Seed(ctx, at, seed, nil)
		if err != nil || again.TookOver || again.Entry.Version <= theirs.Version {
			t.Fatalf("over a tombstone: %+v, %v", again, err)
		}
		if n := locks(t, at); n != 0 {
			t.Fatalf("%d claims left", n)
		}
	})
}

// TestDeleteAfterTakeOver: who takes over what another is about to delete keeps it.
func TestDeleteAfterTakeOver(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		ctx := t.Context()
		s := open(t, protocol)
		at := table(t, s)
		payload := text(`{"singer_state": {"a": 1}}`)
		created, err := s.Create(ctx, at, payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, takeOver := range map[string]func(*statestore.Store) (statestore.Written, error){
			"create": func(s *statestore.Store) (statestore.Written, error) { return s.Create(ctx, at, payload, nil) },
			"seed":   func(s *statestore.Store) (statestore.Written, error) { return s.Seed(ctx, at, text("{}"), nil) },
		} {
			next := open(t, protocol)
			if written, err := takeOver(next); err != nil || !written.TookOver {
				t.Fatalf("%s: %+v, %v", name, written, err)
			}
			if deleted, err := next.Delete(ctx, at, created.Entry.Version); err != nil || !deleted.Left {
				t.Errorf("%s, then delete: %+v, %v", name, deleted, err)
			}
			if found, err := next.Read(ctx, at); err != nil || found.Version != created.Entry.Version {
				t.Errorf("%s, then delete, then read: %+v, %v", name, found, err)
			}
			if _, err := next.Seed(ctx, at, payload, nil); !errors.As(err, new(*statestore.ExistsError)) {
				t.Errorf("%s, then delete, then seed: %v, want that it exists", name, err)
			}
			updated, err := next.Update(ctx, at, created.Entry.Version, statestore.Set(text(`{"singer_state": {"a": 2}}`)), statestore.Keep())
			if err != nil {
				t.Fatal(err)
			}
			if deleted, err := next.Delete(ctx, at, updated.Entry.Version); err != nil || deleted.Left {
				t.Errorf("%s, update, then delete: %+v, %v", name, deleted, err)
			}
			if created, err = next.Create(ctx, at, payload, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSeedOnce: of several that sow one entry at a time, one writes, and the others find what it wrote.
func TestSeedOnce(t *testing.T) {
	ctx := t.Context()
	at := table(t, open(t, chconn.Native))
	results := make([]statestore.Written, 4)
	var group sync.WaitGroup
	for i := range results {
		s := open(t, chconn.Native)
		group.Go(func() {
			var err error
			if results[i], err = s.Seed(ctx, at, text(`{"singer_state": {"by": `+string(rune('0'+i))+`}}`), nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	wrote := 0
	for _, result := range results {
		if !result.TookOver {
			wrote++
		}
		if result.Entry.Version != results[0].Entry.Version {
			t.Errorf("one has version %d, another %d", result.Entry.Version, results[0].Entry.Version)
		}
	}
	if wrote != 1 {
		t.Errorf("%d have written, want 1", wrote)
	}
}
