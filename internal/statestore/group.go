package statestore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// Terraform works on many resources at a time, and each of their entries would cost the server seven statements or eight.
// Calls on single entries of one table that are in flight together share them instead: one lock, one reading of the
// versions and one of the payloads that matter, one INSERT, one verification, one release.
//
// A call that finds its lane idle sets out at once, alone; those that come meanwhile set out together when it is done.
// But Terraform's come one by one: if each group set out with those who happened to be there, it would be two or three of
// ten, and each costs the server as much as ten. So a group is gathered: three quarters of the calls that were under way
// at once should be there, and the next one gets twice as long to come as the group before took, since that is what it
// would wait for if it came too late; half a second in all. At a parallelism of 10, a thousand entries make 150 groups this
// way instead of 300 to 400, and the server has half of the work.
//
// Where calls were under way together, a lane is not idle as soon as all are served, but when nobody has come for that
// time: else the first to come back would set out alone, and leave the others to the next group. So a lone call waits for
// others if it comes right after many, and once. One that comes after another, or to an idle lane, waits for nobody.
//
// Each call keeps its own decision and its own outcome: an entry that moved or exists already refuses for itself. One
// that another client has locked waits alone. What fails for all, and might be the fault of one, is tried again for
// each alone, so that no entry fails for its neighbour.
//
// A call that is cancelled leaves, until its entry has been decided on; from then on it waits for the outcome, since
// its caller must know what was written. The statements are cancelled when the last caller is.

// maxGroup bounds how many calls share statements: as many state_ids as travel as arguments.
const maxGroup = 100

// maxGathering bounds how long a group is gathered in all.
const maxGathering = 500 * time.Millisecond

// A lane is what calls must have in common to share statements.
type lane struct {
	table chsql.Table
	// hold is the lock_id under which the entries are held already, if any: a write cannot span both.
	hold string
}

// A member is one call on its way.
type member struct {
	task
	// ctx is the caller's.
	ctx       context.Context
	operation string
	state     atomic.Int32
	done      chan outcome
}

// The states of a member: it waits until either the caller leaves, or the group decides on the entry.
const (
	memberWaits int32 = iota
	memberLeft
	memberDecided
)

// leave takes the caller out, unless the entry has been decided on.
func (m *member) leave() bool {
	return m.state.CompareAndSwap(memberWaits, memberLeft) || m.state.Load() == memberLeft
}

// stay keeps the caller in from now on, unless it has left.
func (m *member) stay() bool {
	return m.state.CompareAndSwap(memberWaits, memberDecided) || m.state.Load() == memberDecided
}

// A grouper collects the members of each lane. The zero value is ready.
type grouper struct {
	mu sync.Mutex
	// busy has a queue for every lane on which a group is on its way, or gathers.
	busy map[lane]*queue
}

// A queue is who waits for the next group of a lane.
type queue struct {
	waiting []*member
	// underway counts those who wait and those in the group on its way; most is how many that were at once, as far as the
	// others have not been waited for in vain since.
	underway, most int
	// arrived has an element if somebody came since it was last taken.
	arrived chan struct{}
}

// sweep takes out those who have left.
func (q *queue) sweep() {
	there := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(m *member) bool { return m.state.Load() == memberLeft })
	q.underway -= there - len(q.waiting)
}

// join hands a call to its lane and waits for the outcome. Run works on one group, whose ids differ.
func (g *grouper) join(ctx context.Context, at lane, operation string, t task, run func(at lane, members []*member)) (outcome, error) {
	m := &member{task: t, ctx: ctx, operation: operation, done: make(chan outcome, 1)}
	if q, idle := g.enter(at, m); idle {
		go g.drain(at, q, run)
	}
	select {
	case o := <-m.done:
		return o, o.err
	case <-ctx.Done():
		if m.leave() {
			return outcome{}, context.Cause(ctx)
		}
	}
	o := <-m.done
	return o, o.err
}

// enter queues a member, and tells whether its lane was idle.
func (g *grouper) enter(at lane, m *member) (q *queue, idle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q, busy := g.busy[at]
	if !busy {
		q = &queue{arrived: make(chan struct{}, 1)}
		if g.busy == nil {
			g.busy = make(map[lane]*queue)
		}
		g.busy[at] = q
	}
	q.waiting = append(q.waiting, m)
	q.underway++
	q.most = max(q.most, q.underway)
	select {
	case q.arrived <- struct{}{}:
	default:
	}
	return q, !busy
}

// drain runs groups until nobody comes any more.
func (g *grouper) drain(at lane, q *queue, run func(at lane, members []*member)) {
	for members := g.next(at, q); len(members) > 0; members = g.next(at, q) {
		start := time.Now()
		run(at, members)
		g.done(q, len(members))
		g.gather(q, 2*time.Since(start))
	}
}

// done takes out the members of a group. One that goes on alone is no concern of the lane's any more.
func (g *grouper) done(q *queue, members int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.underway -= members
}

// gather waits until enough members are there, nobody has come for the time of a patience, or it has taken too long.
func (g *grouper) gather(q *queue, patience time.Duration) {
	next, end := time.NewTimer(patience), time.NewTimer(maxGathering)
	defer next.Stop()
	defer end.Stop()
	for !g.enough(q) {
		select {
		case <-q.arrived:
			next.Reset(patience)
			continue
		case <-next.C:
		case <-end.C:
		}
		g.settle(q)
		return
	}
}

// enough tells whether three quarters of those are there who may have come meanwhile: the first of all was alone, and all
// others may wait behind it. Where no two were under way at once, nobody is waited for.
func (g *grouper) enough(q *queue) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.sweep()
	return 4*len(q.waiting) >= 3*min(q.most-1, maxGroup)
}

// settle takes those who are there for all who come.
func (g *grouper) settle(q *queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.most = q.underway
}

// next takes the next group, or ends the lane. A second call for one state_id waits for the group after.
func (g *grouper) next(at lane, q *queue) (members []*member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.sweep()
	taken := make(map[string]bool)
	var rest []*member
	for _, m := range q.waiting {
		if len(members) == maxGroup || taken[m.id] {
			rest = append(rest, m)
			continue
		}
		taken[m.id] = true
		members = append(members, m)
	}
	q.waiting = rest
	if len(members) == 0 {
		delete(g.busy, at)
	}
	return members
}

// writeOne changes one entry under its lock, together with others that are in flight.
func (s *Store) writeOne(ctx context.Context, at chsql.Table, operation string, t task) (outcome, error) {
	table, err := s.lockable(ctx, at)
	if err != nil {
		return outcome{}, err
	}
	hold := s.locker.Covered(table.lock, t.id)
	return s.writes.join(ctx, lane{at, hold}, operation, t, s.writeGroup)
}

// writeGroup writes a group of entries, without waiting for a lock: whoever meets one waits for it outside of the lane.
func (s *Store) writeGroup(at lane, members []*member) {
	for len(members) > 0 {
		outcomes, err := s.writeMembers(at, members, eachNow)
		if err == nil {
			deliver(members, outcomes)
			return
		}
		// One that is busy waits alone, and the others go on without it. What the lock or the table says is true for all;
		// of any other failure nobody knows whose it is.
		alone, rest := members, []*member(nil)
		var busy *BusyError
		switch {
		case errors.As(err, &busy):
			if i := culprit(busy, members); i >= 0 {
				alone, rest = members[i:i+1], slices.Delete(slices.Clone(members), i, i+1)
			}
		case len(members) == 1, aboutAll(err):
			deliverError(members, err)
			return
		}
		for _, m := range alone {
			go s.writeAlone(at, m)
		}
		members = rest
	}
}

// culprit is the index of the member whose lock somebody holds, or -1 if nobody was seen.
func culprit(busy *BusyError, members []*member) int {
	if busy.LockID == "" && busy.Holder == "" {
		return -1
	}
	return slices.IndexFunc(members, func(m *member) bool { return m.id == busy.StateID })
}

// aboutAll tells errors that each member would meet alone as well: of the connection, the table, or our own claims.
func aboutAll(err error) bool {
	var server *ServerError
	if errors.As(err, &server) && server.Code == chconn.CodeTooManyParts {
		return true // after it was tried again for a while
	}
	return errors.As(err, new(*ConnectError)) || errors.As(err, new(*NoTableError)) || errors.As(err, new(*lock.WithdrawError))
}

// writeAlone writes one entry, and waits for its lock.
func (s *Store) writeAlone(at lane, m *member) {
	members := []*member{m}
	outcomes, err := s.writeMembers(at, members, each)
	if err != nil {
		deliverError(members, err)
		return
	}
	deliver(members, outcomes)
}

// writeMembers writes a group once.
func (s *Store) writeMembers(at lane, members []*member, how manner) ([]outcome, error) {
	ctx, done := shared(members)
	defer done()
	tasks := make([]task, len(members))
	operation := members[0].operation
	for i, m := range members {
		if m.operation != operation {
			operation = "entries"
		}
		tasks[i] = m.task
		tasks[i].decide = func(now stored) (change, error) {
			if !m.stay() {
				return change{}, context.Cause(m.ctx)
			}
			return m.decide(now)
		}
	}
	return s.write(ctx, at.table, operation, tasks, how)
}

// shared is the context of a group: it ends when all callers have given up.
func shared(members []*member) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(members[0].ctx))
	left := new(atomic.Int64)
	left.Store(int64(len(members)))
	stops := make([]func() bool, len(members))
	for i, m := range members {
		stops[i] = context.AfterFunc(m.ctx, func() {
			if left.Add(-1) == 0 {
				cancel(context.Cause(m.ctx))
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

func deliverError(members []*member, err error) {
	deliver(members, slices.Repeat([]outcome{{err: err}}, len(members)))
}

func deliver(members []*member, outcomes []outcome) {
	for i, m := range members {
		m.done <- outcomes[i]
	}
}

// readOne reads one live entry, together with others that are in flight.
func (s *Store) readOne(ctx context.Context, at Address) (Entry, error) {
	o, err := s.reads.join(ctx, lane{table: at.table()}, "entry.read", task{id: at.StateID}, s.readGroup)
	return o.Entry, err
}

// readGroup reads a group of entries, or each alone if that fails.
func (s *Store) readGroup(at lane, members []*member) {
	outcomes, err := s.readMembers(at, members)
	switch {
	case err == nil:
		deliver(members, outcomes)
	case len(members) == 1, aboutAll(err):
		deliverError(members, err)
	default:
		for _, m := range members {
			go s.readGroup(at, []*member{m})
		}
	}
}

func (s *Store) readMembers(at lane, members []*member) ([]outcome, error) {
	ctx, done := shared(members)
	defer done()
	table, err := s.resolve(ctx, at.table)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.id
	}
	found := make(map[string]Entry, len(ids))
	read := func() error {
		entries, err := query(ctx, s, statement("entry.read", table.state.Live(ids)), scanEntry)
		for _, e := range entries {
			found[e.StateID] = e
		}
		return err
	}
	err = read()
	if err == nil && len(found) < len(ids) && table.table.Engine.Replicated() {
		err = read() // A replica that lags behind must not make Terraform forget what it does not show yet.
	}
	if err != nil {
		return nil, s.tableGone(ctx, at.table, err)
	}
	outcomes := make([]outcome, len(members))
	for i, m := range members {
		entry, live := found[m.id]
		if !live {
			outcomes[i].err = ErrNotFound
			continue
		}
		outcomes[i].Entry = entry
	}
	return outcomes, nil
}
