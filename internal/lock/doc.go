// Package lock is the advisory lock that every write of pipeline state happens in, and that Meltano's own
// ClickHouse state backend honours.
//
// # The protocol
//
// ClickHouse has no row locks. A lock is a row, a claim, in a second table: (state_id, lock_id, locked_at).
// All parties agree to write a state_id only while they hold it, and to take a claim that is older than
// 300 s by the server's clock for dead. Meltano looks whether anybody holds, inserts its claim, waits a
// second, reads all claims, and holds if its lock_id is the smallest in text order; else it withdraws.
//
// Ours goes beyond that where it can, since looking and inserting are two steps there:
//
//   - Acquire. One guarded INSERT puts a claim for each state_id, and puts nothing if a live claim of another
//     exists for any of them. Then one SELECT reads all live claims, without FINAL. The lock is held if and
//     only if ours is there and is the only one. Our lock_ids begin with 48 zero bits, so they sort before
//     Meltano's: a Meltano claimant that comes later sees the smaller lock_id and withdraws, and we wait
//     for that. Among ours, the larger withdraws at once. A larger one that stays holds already: its claim
//     and ours were put at the same time and it read first. Then the smaller withdraws and comes back
//     later, since a holder cannot write in sight of a rival.
//   - Hold. Claims are renewed every fifth of the lease by a statement that inserts the same lock_id again
//     only while our claim is there, fresh and alone. A renewal that checks first and inserts later brings a
//     claim that was swept meanwhile back to life inside somebody else's hold.
//   - Write. The rows travel beside one INSERT that checks and writes: our claims are there, younger than nine
//     tenths of the lease and alone, and the newest stored version of each state_id is the one that was read
//     inside the lock. Then one SELECT verifies what became of it.
//   - Release. The renewer is stopped and waited for, an unanswered INSERT is killed, our claims are deleted
//     by state_id and our own lock_id, read back, and deleted again while one is left.
//
// # Why it is safe
//
// Two claimants cannot both find themselves alone, since each reads after its own INSERT was acknowledged,
// and on one server an acknowledged INSERT is seen by every later SELECT. A holder that stalls for longer
// than its lease finds the fence closed. A stamp is chosen before the INSERT, so a write whose answer was lost
// is settled by reading: the newest version is the stamp, or it is not.
//
// A lock table that Meltano made is ordered by state_id alone, and a merge keeps only the newest claim of a
// state_id. There, our claims are dated ten seconds back, so that a merge drops ours and not a live
// pipeline's, and every decision waits for the settle first.
//
// Package model, below this one, holds all that against every interleaving of a few clients.
//
// # What it does not promise
//
// A Meltano client that holds for longer than 300 s is taken for dead by everyone, and its late write, which
// nothing fences, can replace ours. The fence is no transaction: a claim deleted between its check and the
// commit, some milliseconds, does not stop the write; the verification finds what that can cause. On a lock
// table of Meltano's layout, several Meltano clients can hide each other's claims. Replicas that lag behind
// an acknowledged INSERT void the argument above.
package lock
