package statestore

import (
	"context"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

// A Health is a state table in numbers.
type Health struct {
	Table Table
	// LiveEntries are the entries that readers see, Tombstones those that are deleted and still have a row.
	LiveEntries, Tombstones uint64
	// RawRows are all rows that are stored. UnmergedVersions are those among them that a merge would drop,
	// since a newer version of the same state_id is there.
	RawRows, UnmergedVersions uint64
	// OldestUnmerged is how long the one of them that has waited longest has been waiting: since it was replaced.
	OldestUnmerged time.Duration
	// Ahead is how far the newest version lies ahead of the server's clock; zero if it does not. Until that much
	// time has passed, what Meltano writes for that state_id stays hidden behind it.
	Ahead time.Duration
	// ActiveParts and BytesOnDisk are the state table's on the server that was asked.
	ActiveParts, BytesOnDisk uint64
}

// Converged tells whether there is nothing left to merge: each state_id has one row.
func (h Health) Converged() bool { return h.UnmergedVersions == 0 }

// Health counts what is stored in a table. It takes no lock. Errors as for Table.
func (s *Store) Health(ctx context.Context, id TableIdentity) (Health, error) {
	found, err := s.inspectSame(ctx, id)
	if err != nil {
		return Health{}, err
	}
	h := Health{Table: found.table}
	_, err = query(ctx, s, statement("table.health", found.state.Health()), func(r chconn.Row) (struct{}, error) {
		var (
			keys           uint64
			waiting, ahead int64
		)
		err := r.Scan(&h.RawRows, &keys, &h.LiveEntries, &waiting, &ahead)
		h.UnmergedVersions, h.Tombstones = h.RawRows-keys, keys-min(keys, h.LiveEntries)
		h.OldestUnmerged, h.Ahead = time.Duration(waiting)*time.Second, time.Duration(max(ahead, 0))*time.Microsecond
		return struct{}{}, err
	})
	if err == nil {
		_, err = query(ctx, s, statement("table.parts", found.state.Parts()), func(r chconn.Row) (struct{}, error) {
			return struct{}{}, r.Scan(&h.ActiveParts, &h.BytesOnDisk)
		})
	}
	if err != nil {
		return Health{}, s.tableGone(ctx, id.table(), err)
	}
	return h, nil
}
