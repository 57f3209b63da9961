package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

// race runs one scenario, and judges it. An error means that there is no verdict.
func race(ctx context.Context, server acctest.Endpoint, s scenario, o options) (*verdict, error) {
	a, err := enter(ctx, server, s, o.seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer func() { _ = a.conn.Close() }() // everything has been read
	started := time.Now()
	err = a.fight(ctx, max(1, int64(float64(o.increments)*s.Share)), o.limit)
	v := &verdict{Scenario: s, Elapsed: time.Since(started)}
	if err != nil {
		v.violation("%v", err)
	}
	for _, err := range a.failures {
		v.violation("%v", err)
	}
	if err := a.judge(context.WithoutCancel(ctx), v); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if len(v.Violations) > 0 && o.evidence != "" {
		if err := a.keepEvidence(context.WithoutCancel(ctx), o.evidence); err != nil {
			v.violation("keep the evidence: %v", err)
		}
	}
	return v, ctx.Err()
}

// judge reads what is left on the server and in the journals. All processes have ended.
func (a *arena) judge(ctx context.Context, v *verdict) error {
	finals := map[string]tally{}
	for _, counter := range a.counters {
		state, err := a.peer().Get(ctx, counter)
		if err != nil {
			return err
		}
		if finals[counter], err = tallyOf(state); err != nil {
			return err
		}
	}
	trace, err := readTrace(ctx, a.conn, a.run)
	if err != nil {
		return err
	}
	holds, landings := follow(trace)
	v.judgeHistory(incrementsOf(a.processes), finals, landings)
	v.judgeOverlaps(holds, landings)
	v.judgeAcquiring(holds, trace)
	v.judgeWaiting(a.processes, a.longestRound())
	if v.Claims, err = a.claimsLeft(ctx); err != nil {
		return err
	}
	v.Faults = a.faultsDone()
	v.conclude()
	return nil
}

func (a *arena) faultsDone() map[string]int64 {
	var kills int64
	for _, p := range a.processes {
		if p.killed() {
			kills++
		}
	}
	return map[string]int64{
		"stalls": a.counts.stalls.Load(), "SIGSTOP": a.counts.freezes.Load(), "kill -9": kills,
		"merges": a.counts.merges.Load(), "cuts": a.counts.cuts.Load(),
	}
}

// ourPrefix begins every lock_id of ours: 48 zero bits, and the version 8.
const ourPrefix = "00000000-0000-8"

// claimsLeft counts the claims in the lock table, and finds out why each of ours is there.
func (a *arena) claimsLeft(ctx context.Context) (left claimsLeft, err error) {
	rows, err := a.conn.Query(ctx, "SELECT DISTINCT lock_id FROM "+a.database+"."+tableName+"_lock")
	if err != nil {
		return left, fmt.Errorf("read the claims that are left: %w", err)
	}
	var lockIDs []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return left, fmt.Errorf("read the claims that are left: %w", err)
		}
		lockIDs = append(lockIDs, id)
	}
	if err := rows.Err(); err != nil {
		return left, fmt.Errorf("read the claims that are left: %w", err)
	}
	for _, id := range lockIDs {
		if !strings.HasPrefix(id, ourPrefix) {
			left.Peers++
			continue
		}
		if err := a.explain(ctx, id, &left); err != nil {
			return left, err
		}
	}
	return left, nil
}

// explain finds whose claim a lock_id is, and how the round ended that it belongs to.
func (a *arena) explain(ctx context.Context, lockID string, left *claimsLeft) error {
	var (
		label, last string
		at          time.Time
	)
	// The ids are in the statements' text, where the driver puts its arguments.
	err := a.conn.QueryRow(ctx, `SELECT splitByChar('/', splitByChar(' ', argMin(log_comment, query_start_time_microseconds))[1])[2],
    splitByChar(' ', argMax(log_comment, query_start_time_microseconds))[2], max(query_start_time_microseconds)
FROM system.query_log WHERE type != 'QueryStart' AND position(query, ?) > 0 AND position(log_comment, ?) > 0`,
		lockID, a.run+"-").Scan(&label, &last, &at)
	if err != nil {
		return fmt.Errorf("find the owner of %s: %w", lockID, err)
	}
	for _, p := range a.processes {
		if p.spec.Label != label {
			continue
		}
		switch end, ok := p.endAfter(at); {
		case !ok && p.killed():
			left.Killed++
		case ok && end.Unreleased:
			left.Announced++
		case ok && last == "lock.left":
			// It was read back after the last DELETE, and the owner believed it gone, or it would have deleted again.
			left.Undone++
		default:
			left.Unexplained++
		}
		return nil
	}
	left.Unexplained++
	return nil
}

// endAfter returns how the round ended that a statement at this time belongs to; ok is false if it never did.
func (p *process) endAfter(at time.Time) (end event, ok bool) {
	for _, e := range p.events {
		if e.Kind == ended && e.At >= at.UnixMicro() {
			return e, true
		}
	}
	return event{}, false
}
