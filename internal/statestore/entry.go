package statestore

import (
	"context"
	"errors"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// An Address names one entry.
type Address struct {
	Database, Table, StateID string
}

// String returns the address as imports spell it: database/table/state_id.
func (a Address) String() string { return a.Database + "/" + a.Table + "/" + a.StateID }

func (a Address) table() chsql.Table { return chsql.Table{Database: a.Database, Name: a.Table} }

// An Entry is one live entry as it is stored.
type Entry struct {
	StateID string
	// Completed and Partial are JSON objects; nil is NULL, which Meltano reads as an empty object.
	Completed, Partial *string
	// Version orders the versions of an entry: microseconds of the server's clock (layout versioned).
	Version uint64
	// UpdatedAt is when the version was written, by the server's clock, in milliseconds, UTC.
	UpdatedAt time.Time
}

// A Value is what a write does to a payload column.
type Value struct {
	keep bool
	text *string
}

// Keep leaves a payload as it is stored, copied inside the lock.
func Keep() Value { return Value{keep: true} }

// Set stores a payload. Nil and an empty object are stored as NULL, as Meltano does.
func Set(text *string) Value { return Value{text: text} }

// Over returns the payload that the value makes of the one that is stored.
func (v Value) Over(stored *string) *string {
	if v.keep {
		return stored
	}
	if isEmpty(v.text) {
		return nil
	}
	return v.text
}

func isEmpty(payload *string) bool { return payload == nil || bookmark.IsEmpty(*payload) }

// samePayload tells whether two payloads are the same stored state.
func samePayload(a, b *string) bool {
	if isEmpty(a) || isEmpty(b) {
		return isEmpty(a) && isEmpty(b)
	}
	return bookmark.Equal(*a, *b)
}

// A Written is the outcome of a create or an update.
type Written struct {
	Entry Entry
	// TookOver says that a live entry was there, and nothing was written: a create found it with an equal
	// payload, or a seed found it at all. Entry is that one.
	TookOver bool
	// Left says that a delete left the entry to another, who took it over by this store: when a resource is
	// renamed, its new name may come before the old one goes, and both have read the same version.
	Left bool
	// Ahead is how far the version lies ahead of the server's clock, because a version was stored there
	// already: until that much time has passed, writes of pipelines stay hidden behind it. Zero if it
	// does not, or by a second at most.
	Ahead time.Duration
	// Unreleased is set if the write is done, but a claim of the lock may be left behind.
	Unreleased *ReleaseError
}

// Read returns the live entry, or ErrNotFound. It takes no lock.
func (s *Store) Read(ctx context.Context, at Address) (Entry, error) {
	return s.readOne(ctx, at)
}

func scanEntry(r chconn.Row) (e Entry, err error) {
	err = r.Scan(&e.StateID, &e.Completed, &e.Partial, &e.Version, &e.UpdatedAt)
	e.UpdatedAt = e.UpdatedAt.UTC()
	return e, err
}

// Create writes an entry that must not be live yet; over a tombstone it writes the next version.
//
// It returns an *ExistsError if a live entry is there, unless that one's payload is equal in meaning and
// this store has not written it: then it is taken over as it is, so that a create whose answer was lost can
// be repeated. Other errors: *BusyError, *LostError, *UncertainError, *UnfitError, *NoTableError.
func (s *Store) Create(ctx context.Context, at Address, completed, partial *string) (Written, error) {
	return s.edit(ctx, at, Edit{Verb: EditCreate, Completed: Set(completed), Partial: Set(partial)})
}

// Seed writes an entry unless a live one is there, which it leaves as it is, whatever it holds. It returns an
// *ExistsError if this store has written that one. Other errors as for Create.
func (s *Store) Seed(ctx context.Context, at Address, completed, partial *string) (Written, error) {
	return s.edit(ctx, at, Edit{Verb: EditSeed, Completed: Set(completed), Partial: Set(partial)})
}

// Update writes a new version over the one that the caller has read, unless the payloads are the stored ones
// already. It returns a *MovedError, and has written nothing, if another version is stored. Other errors as
// for Create.
func (s *Store) Update(ctx context.Context, at Address, expect uint64, completed, partial Value) (Written, error) {
	return s.edit(ctx, at, Edit{Verb: EditUpdate, Expect: expect, Completed: completed, Partial: partial})
}

// Delete writes a tombstone over the version that the caller has read. An entry that is gone already is no
// error; one that moved is a *MovedError, and nothing was written. See also Written.Left.
func (s *Store) Delete(ctx context.Context, at Address, expect uint64) (Written, error) {
	written, err := s.edit(ctx, at, Edit{Verb: EditDelete, Expect: expect})
	if errors.As(err, new(*NoTableError)) {
		return Written{}, nil // Nothing can be in a table that is gone.
	}
	return written, err
}

// edit edits one entry.
func (s *Store) edit(ctx context.Context, at Address, e Edit) (Written, error) {
	written, err := s.writeOne(ctx, at.table(), "entry."+e.Verb.String(), s.task(at, e))
	if err != nil {
		return written.Written, err
	}
	return e.written(written), nil
}

func (s *Store) manages(at Address) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.managed[at]
	return ok
}

// manage remembers which entries of a table this store has written or taken over. It is called under their lock, so that
// no delete comes in between.
func (s *Store) manage(table chsql.Table, outcomes []outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range outcomes {
		at := Address{Database: table.Database, Table: table.Name, StateID: o.Entry.StateID}
		switch {
		case o.err != nil:
		case o.live:
			s.managed[at] = struct{}{}
			if o.takes {
				s.takenOver[at] = o.Entry.Version
			}
		default:
			delete(s.managed, at)
		}
	}
}

// tookOver tells whether this version of an entry has found another owner, who wrote nothing.
func (s *Store) tookOver(at Address, version uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, ok := s.takenOver[at]
	return ok && taken == version
}
