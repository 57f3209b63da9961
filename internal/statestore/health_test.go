package statestore_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestHealth counts what is stored; the guide's story has the rest of the numbers.
func TestHealth(t *testing.T) {
	for _, layout := range statestore.TableLayouts() {
		t.Run(string(layout), func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
				ctx, conn, s := t.Context(), acctest.Conn(t), open(t, protocol)
				id := statestore.TableIdentity{Database: acctest.Database(t), Name: "state"}
				if _, err := s.Health(ctx, id); !errors.Is(err, statestore.ErrNotFound) {
					t.Fatalf("of no table: %v", err)
				}
				if _, _, err := s.CreateTable(ctx, statestore.TableSpec{Database: id.Database, Name: id.Name, Layout: layout}); err != nil {
					t.Fatal(err)
				}
				state := id.Database + ".state"
				exec(t, conn, "SYSTEM STOP MERGES "+state)
				health := func(want statestore.Health) {
					t.Helper()
					got, err := s.Health(ctx, id)
					if err != nil {
						t.Fatal(err)
					}
					if got.Table.Layout != layout || got.BytesOnDisk == 0 != (got.ActiveParts == 0) {
						t.Errorf("%+v", got)
					}
					if slow := got.OldestUnmerged - want.OldestUnmerged; slow < 0 || slow > time.Minute || slow > 0 && want.OldestUnmerged == 0 {
						t.Errorf("waiting for %s, want %s", got.OldestUnmerged, want.OldestUnmerged)
					}
					if early := want.Ahead - got.Ahead; early < 0 || early > time.Minute {
						t.Errorf("ahead by %s, want %s", got.Ahead, want.Ahead)
					}
					want.Table, want.BytesOnDisk, want.OldestUnmerged, want.Ahead = got.Table, got.BytesOnDisk, got.OldestUnmerged, got.Ahead
					if !reflect.DeepEqual(got, want) {
						t.Errorf("got %+v, want %+v", got, want)
					}
				}
				health(statestore.Health{})
				for _, age := range []string{"500", "300", "100"} {
					exec(t, conn, "INSERT INTO "+state+" (state_id, updated_at) VALUES ('a', now64(3) - "+age+")")
				}
				exec(t, conn, "INSERT INTO "+state+" (state_id) VALUES ('b')")
				// The first of three was replaced 300 s ago.
				health(statestore.Health{LiveEntries: 2, RawRows: 4, UnmergedVersions: 2, ActiveParts: 4, OldestUnmerged: 300 * time.Second})
				exec(t, conn, "SYSTEM START MERGES "+state)
				exec(t, conn, "OPTIMIZE TABLE "+state+" FINAL")
				health(statestore.Health{LiveEntries: 2, RawRows: 2, ActiveParts: 1})
				if layout == statestore.LayoutVersioned {
					exec(t, conn, "INSERT INTO "+state+" (state_id, version) VALUES ('c', toUnixTimestamp64Micro(now64(6)) + 600000000)")
				} else {
					exec(t, conn, "INSERT INTO "+state+" (state_id, updated_at) VALUES ('c', now64(3) + 600)")
				}
				health(statestore.Health{LiveEntries: 3, RawRows: 3, ActiveParts: 2, Ahead: 600 * time.Second})
			})
		})
	}
}
