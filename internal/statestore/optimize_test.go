package statestore_test

import (
	"errors"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestRisesAgain: an older version that comes in late stays hidden behind a tombstone, and is alive again once that was
// removed on purpose. Then reads show it, and a create does not go over it.
func TestRisesAgain(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		ctx, conn, s := t.Context(), acctest.Conn(t), open(t, protocol)
		at := table(t, s)
		id := statestore.TableIdentity{Database: at.Database, Name: at.Table}
		created, err := s.Create(ctx, at, text(`{"singer_state": {"old": 1}}`), nil)
		if err == nil {
			_, err = s.Delete(ctx, at, created.Entry.Version)
		}
		if err != nil {
			t.Fatal(err)
		}
		late := func() {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state, version) VALUES (?, ?, ?)", at.StateID, `{"singer_state": {"old": 1}}`, created.Entry.Version)
		}
		if _, _, err := s.Optimize(ctx, id, false); err != nil {
			t.Fatal(err)
		}
		late()
		if _, err := s.Read(ctx, at); !errors.Is(err, statestore.ErrNotFound) {
			t.Errorf("behind a tombstone: %v", err)
		}
		var refused *statestore.NoCleanupError
		if _, _, err := s.Optimize(ctx, id, true); !errors.As(err, &refused) || refused.Setting == "" {
			t.Errorf("clean-up without the setting: %v", err)
		}
		exec(t, conn, "ALTER TABLE "+quoted(at)+" MODIFY SETTING allow_experimental_replacing_merge_with_cleanup = 1")
		before, after, err := s.Optimize(ctx, id, true)
		if err != nil || before.Tombstones != 1 || after.RawRows != 0 {
			t.Fatalf("clean-up: %+v to %+v, %v", before, after, err)
		}
		late()
		if risen, err := s.Read(ctx, at); err != nil || risen.Version != created.Entry.Version {
			t.Errorf("after the clean-up: %+v, %v", risen, err)
		}
		var exists *statestore.ExistsError
		if _, err := open(t, protocol).Create(ctx, at, text(`{"singer_state": {"new": 1}}`), nil); !errors.As(err, &exists) || exists.Version != created.Entry.Version {
			t.Errorf("create over it: %v", err)
		}
	})
}
