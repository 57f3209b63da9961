package statestore

// A Verb is what an Edit does.
type Verb int

// The verbs do what the methods of Store do that are named like them. EditClear is a delete of whatever is stored.
const (
	EditCreate Verb = iota
	EditSeed
	EditUpdate
	EditDelete
	EditClear
)

// String names the operation in logs.
func (v Verb) String() string {
	switch v {
	case EditUpdate:
		return "update"
	case EditDelete, EditClear:
		return "delete"
	case EditCreate, EditSeed:
	}
	return "create"
}

// An Edit is what is to become of one entry.
type Edit struct {
	StateID string
	Verb    Verb
	// Expect is the version that the caller has read, for an update or a delete.
	Expect uint64
	// Completed and Partial are for all but a delete or a clear. A create has nothing to Keep, and stores NULL.
	Completed, Partial Value
}

// deletes tells whether nothing is to be left of the entry.
func (e Edit) deletes() bool { return e.Verb == EditDelete || e.Verb == EditClear }

// task is an edit of an entry as a task.
func (s *Store) task(at Address, e Edit) task {
	return task{id: at.StateID, versionsOnly: e.deletes(), decide: func(now stored) (change, error) { return s.decide(at, e, now) }}
}

// decide says what an edit makes of what is stored. It returns an *ExistsError or a *MovedError if that is not what
// the edit is about.
func (s *Store) decide(at Address, e Edit, now stored) (change, error) {
	switch e.Verb {
	case EditCreate, EditSeed:
		next := change{completed: e.Completed.Over(nil), partial: e.Partial.Over(nil)}
		if !now.live {
			return next, nil
		}
		if s.manages(at) || e.Verb == EditCreate && !next.same(now) {
			return change{}, &ExistsError{Address: at, Version: now.entry.Version}
		}
		return change{none: true, takes: true}, nil
	case EditUpdate:
		if !now.live || now.entry.Version != e.Expect {
			return change{}, now.moved(at, e.Expect)
		}
		next := change{completed: e.Completed.Over(now.entry.Completed), partial: e.Partial.Over(now.entry.Partial)}
		next.none = next.same(now)
		return next, nil
	case EditClear:
		return change{none: !now.live, deleted: now.live}, nil
	case EditDelete:
	}
	switch {
	case !now.live || s.tookOver(at, now.entry.Version):
		return change{none: true}, nil
	case now.entry.Version != e.Expect:
		return change{}, now.moved(at, e.Expect)
	}
	return change{deleted: true}, nil
}

// same tells whether the payloads are the stored ones.
func (c change) same(now stored) bool {
	return samePayload(c.completed, now.entry.Completed) && samePayload(c.partial, now.entry.Partial)
}

// written is what an edit tells of its outcome.
func (e Edit) written(result outcome) Written {
	result.Left = result.unwritten && e.Verb == EditDelete && result.live
	result.TookOver = result.unwritten && (e.Verb == EditCreate || e.Verb == EditSeed)
	return result.Written
}
