// Package model is the lock protocol of package lock as a machine that is small enough to be explored
// completely: every interleaving of its statements with those of other processes and of Meltano clients, with
// stalls, crashes, lost answers, merges and claims that grow old. Its tests say which promise holds where, and
// that each guard of the protocol is needed, by the shortest way to break a promise without it:
//
//	go test -v ./internal/lock/model
//
// It is a second description of the protocol beside the code. Whoever changes one changes the other.
//
// # The actors
//
// One of ours (an owner) wants to write one update into one bookmark. Each line is one statement, and anything
// may happen between two lines:
//
//	claim      INSERT its claim, unless a live claim of another is there; else it tries again
//	decide     (on layout Meltano, after a settle) SELECT the live claims: if its own is the only one, it holds;
//	           if a smaller lock_id is there, or its own is not, it withdraws and starts again;
//	           if only larger ones are, it keeps its claim and reads again, but withdraws
//	           when a larger one of ours stays, since that one holds
//	read       SELECT the newest version; take a stamp (its contents are SELECTed next, and count only if they are still those
//	           of that version: so they are as good as read with it)
//	write      INSERT the new version, unless its claim is gone, older than nine tenths of the lease,
//	           or not alone, or the newest version is not the one it read
//	verify     SELECT: its version is the newest, its claim is there, fresh and alone: done;
//	           else its update is reported as uncertain
//	release    DELETE its claim
//
// and, beside the lines from decide to verify, as often as it likes:
//
//	renew      INSERT its claim again, if it is there, fresh and alone; it counts only if the claim
//	           before it had not expired by then
//
// A refusal because of a rival is waited out. After any other, or an uncertain write, it releases and
// starts again with a new lock_id, without limit. It may give up, or crash, anywhere.
//
// A Meltano client (a peer) does what its backend does, round after round:
//
//	look       SELECT the holder, of all ages; if there is one, DELETE the stale claims and look again
//	enter      INSERT its claim, without a check
//	settle     after a second SELECT all claims: if its lock_id is the smallest, it holds;
//	           else it deletes its claim and looks again
//	read       SELECT the bookmark
//	write      INSERT what it made of it, unfenced
//	release    DELETE its claim
//
// Our lock_ids are smaller than any peer's. Among ours, a new one may lie anywhere.
//
// # The world
//
// A guarded INSERT checks first and lands later; [Steps] says which statements are taken apart like that, and
// [Bound] for how long. Its locked_at is the time at which it began. On a lock table of layout [Meltano] a merge
// may drop the older of two claims at any moment; a TTL merge may drop a stale one on either.
//
// There is no clock: a claim is fresh, older than nine tenths of its lease, or stale, and may cross either
// border at any moment, the oldest first. So a lease may be as long or short as it likes. What is known
// about durations says what cannot happen: while a bounded statement is under way, no claim crosses both
// borders, and no claim that landed meanwhile crosses one or has settled. A peer's claim turns stale
// only when it is dead, unless it may [Variant.Overstay].
//
// Of the bookmark only this is kept: which updates of ours the newest version was made from, and who has read
// it. A version is lost when a newer one was not made from it.
//
// # What is bounded, and why that is enough
//
//   - One state_id. A claim on several is one INSERT of one block, and every guard asks for all of them at
//     once. What one state_id cannot show is two locks held crosswise; that ends by timeout, as is documented.
//   - Two or three of ours and one or two peers. A stalled holder, one who enters over it, and one who
//     comes between are three; more of ours only repeat one of these, with a lock_id that may lie anywhere.
//   - One update of each of ours that is known to be written. A second one by the same process differs in
//     nothing from one by another. Attempts, renewals and a peer's rounds are not limited.
//   - One server: what was acknowledged is seen by all who ask later, and a DELETE deletes (release reads
//     back, and repeats). Replicas that lag are not modelled.
//   - Nobody writes without the lock, nor breaks one.
//
// The rule to start again when putting a claim and reading it back took too long is left out: it only turns
// steps into withdrawals, which may happen anyway, and no promise needs it.
//
// States are equal when they differ only in who of ours is who, in ages and versions that nobody will compare
// again, or in how long ago something was. That keeps them few: see [machine.normal].
package model
