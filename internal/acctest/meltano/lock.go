package meltano

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// A Lock is a lock that its owner takes for held. Nothing renews it.
type Lock struct {
	backend         *Backend
	StateID, LockID string
}

// AcquireLock waits for the lock of a state_id, or returns ErrLocked.
//
// It looks for a holder; if there is one, it sweeps away what is stale, everybody's, and looks again. If there is none, it
// puts a claim, waits for the settle and reads the claims, however old: the smallest lock_id holds. Another withdraws. All
// tries use one lock_id.
func (b *Backend) AcquireLock(ctx context.Context, stateID string) (*Lock, error) {
	lock := &Lock{backend: b, StateID: stateID, LockID: uuid.NewString()}
	for waited := time.Duration(0); waited < b.options.Timeout; waited += b.options.Retry {
		held, err := lock.try(ctx)
		if err != nil {
			return nil, fmt.Errorf("acquire lock of %q: %w", stateID, err)
		}
		if held {
			return lock, nil
		}
		time.Sleep(b.options.Retry)
	}
	return nil, fmt.Errorf("acquire lock of %q: %w", stateID, ErrLocked)
}

func (l *Lock) try(ctx context.Context) (held bool, err error) {
	b := l.backend
	holder, err := l.holder(ctx)
	if err == nil && holder != "" {
		err = b.exec(ctx, StepSweep, fmt.Sprintf("DELETE FROM %s WHERE locked_at < now() - %d", b.lock, b.options.StaleAfter))
		if err == nil {
			holder, err = l.holder(ctx)
		}
	}
	if err != nil || holder != "" {
		return false, err
	}
	if err := b.insert(ctx, StepClaim, b.lock, []string{"state_id", "lock_id"}, l.StateID, l.LockID); err != nil {
		return false, err
	}
	time.Sleep(b.options.Settle)
	claims, err := l.lockIDs(ctx, StepDecide, "SELECT lock_id FROM "+b.lock+" WHERE state_id = ?")
	if err != nil {
		return false, err
	}
	if len(claims) > 0 && slices.Min(claims) == l.LockID {
		return true, nil
	}
	return false, l.remove(ctx, StepWithdraw)
}

// holder returns the lock_id that is shown as the holder's, or "".
func (l *Lock) holder(ctx context.Context) (string, error) {
	found, err := l.lockIDs(ctx, StepHolder, "SELECT lock_id FROM "+l.backend.lock+" FINAL WHERE state_id = ? ORDER BY lock_id LIMIT 1")
	if len(found) == 0 {
		return "", err
	}
	return found[0], err
}

func (l *Lock) lockIDs(ctx context.Context, step Step, text string) (found []string, err error) {
	err = l.backend.query(ctx, step, func(rows driver.Rows) error {
		var id string
		err := rows.Scan(&id)
		found = append(found, id)
		return err
	}, text, l.StateID)
	return found, err
}

// Release removes the claim, whether it is still there or not.
func (l *Lock) Release(ctx context.Context) error { return l.remove(ctx, StepRelease) }

func (l *Lock) remove(ctx context.Context, step Step) error {
	return l.backend.exec(ctx, step, "DELETE FROM "+l.backend.lock+" WHERE state_id = ? AND lock_id = ?", l.StateID, l.LockID)
}
