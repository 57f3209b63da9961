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

		if _, err := s.Delete(ctx, at, theirs.Version); err != nil {
			t.Fatal(err)
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
