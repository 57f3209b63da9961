package statestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// catchUps bounds how often an upgrade copies what was written meanwhile by clients that hold no lock.
const catchUps = 20

// inFlight is how long an INSERT may take that was on its way when the tables were exchanged.
const inFlight = time.Minute

// upgradeState gives a state table of layout meltano the layout versioned, in place: a new table is filled, while
// the old one is in use, and then exchanged for it under the locks of all entries. Entries keep their versions.
// Whatever it is interrupted by, the old table or a complete new one is in use, and repeating it finishes.
func (s *Store) upgradeState(ctx context.Context, found resolved) error {
	defer s.forget(found.state.Table)
	r, err := s.replacing(ctx, found.state.Table)
	if err != nil {
		return err
	}
	if r.done {
		return s.finishState(ctx, r)
	}
	if found.table.Layout == LayoutVersioned {
		return s.restart(ctx, r) // Nothing but a left-over to drop.
	}
	if err := s.upgradable(ctx, found); err != nil {
		return err
	}
	if err := s.restart(ctx, r); err != nil {
		return err
	}
	from, to := found.state, chsql.StateTable{Table: r.beside, Layout: chsql.Versioned}
	if err := s.exec(ctx, "upgrade.create", to.Create(chsql.Definition{Comment: r.mark.on(found.table.Comment), Settings: found.table.Settings})); err != nil {
		return err
	}
	if err := s.reached("created"); err != nil {
		return err
	}
	// Most of the work is done before anybody is locked out.
	if err := s.exec(ctx, "upgrade.copy", from.CopyTo(to)); err != nil {
		return err
	}
	if err := s.reached("copied"); err != nil {
		return err
	}
	err = s.lockAll(ctx, found, func(ctx context.Context, confirm func(context.Context) error) error {
		if err := s.catchUp(ctx, from, to, &r); err != nil {
			return err
		}
		if err := s.exec(ctx, "upgrade.mark", to.ModifyComment(r.mark.on(found.table.Comment), "")); err != nil {
			return err
		}
		if err := s.reached("marked"); err != nil {
			return err
		}
		if err := confirm(ctx); err != nil {
			return err
		}
		if err := s.exchange(ctx, &r); err != nil {
			return err
		}
		if err := s.reached("exchanged"); err != nil {
			return err
		}
		return s.copyLate(ctx, r, inFlight)
	})
	if err != nil {
		return err
	}
	// A client without a lock may have been slower still. What is older than the copy is left alone from here on: it
	// may have been deleted by now.
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	if err := s.copyLate(ctx, r, 0); err != nil {
		return err
	}
	return s.finish(ctx, r)
}

// clock reads the server's time, in Unix milliseconds.
func (s *Store) clock(ctx context.Context) (int64, error) {
	now, err := query(ctx, s, statement("upgrade.clock", chsql.Clock()), func(r chconn.Row) (millis int64, err error) { return millis, r.Scan(&millis) })
	if err != nil {
		return 0, err
	}
	return now[0], nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finishState ends an upgrade that was interrupted after the exchange.
func (s *Store) finishState(ctx context.Context, r replacement) error {
	if r.found != nil {
		if err := s.copyLate(ctx, r, 0); err != nil {
			return err
		}
	}
	return s.finish(ctx, r)
}

// upgradable returns a *CannotUpgradeError for a table of which something would be lost.
func (s *Store) upgradable(ctx context.Context, found resolved) error {
	var reasons misfits
	if columns := found.table.ExtraColumns; len(columns) > 0 {
		reasons.add("it has columns that a new table would not have: %s; drop them first", strings.Join(columns, ", "))
	}
	if found.table.Engine.Replicated() {
		reasons.add("it is replicated (%s); this provider upgrades tables of a single server only", found.table.Engine.Name)
	}
	if strings.Contains(found.table.EngineFull, " TTL ") {
		reasons.add("it has a TTL, which a new table would not have; ALTER TABLE ... REMOVE TTL first")
	}
	views, err := query(ctx, s, statement("upgrade.views", found.state.Views()), func(r chconn.Row) (name string, err error) { return name, r.Scan(&name) })
	if err != nil {
		return err
	}
	if len(views) > 0 {
		reasons.add("views read from it, and would go on with the old table: %s; drop them first", strings.Join(views, ", "))
	}
	if found.unlockable != nil {
		return found.unlockable
	}
	if len(reasons) > 0 {
		return &CannotUpgradeError{Database: found.table.Database, Table: found.table.Name, Reasons: reasons}
	}
	return nil
}

// lockAll runs work under the locks of all entries that a table has. Confirm tells whether they are still held.
func (s *Store) lockAll(ctx context.Context, table resolved, work func(ctx context.Context, confirm func(context.Context) error) error) error {
	ids, err := query(ctx, s, statement("upgrade.ids", table.state.IDs()), func(r chconn.Row) (id string, err error) { return id, r.Scan(&id) })
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return work(ctx, func(context.Context) error { return nil })
	}
	err = s.locker.Do(ctx, table.lock, ids, func(ctx context.Context, held *lock.Held) error {
		if err := s.reached("locked"); err != nil {
			return err
		}
		return work(ctx, held.Confirm)
	})
	if errors.As(err, new(*ReleaseError)) {
		s.logger.WarnContext(ctx, "locks may be left behind after an upgrade", "error", err)
		err = nil
	}
	return err
}

// catchUp copies what was written since the first copy, and compares the tables row by row. What clients without a
// lock write after it has begun is left to copyLate.
func (s *Store) catchUp(ctx context.Context, from, to chsql.StateTable, r *replacement) error {
	var missing, extra uint64
	for range catchUps {
		began, err := s.clock(ctx)
		if err != nil {
			return err
		}
		r.mark.complete = began
		if err := s.exec(ctx, "upgrade.catch_up", from.CopyTo(to)); err != nil {
			return err
		}
		if err := s.exec(ctx, "upgrade.bury", from.BuryIn(to)); err != nil {
			return err
		}
		if err := s.reached("caught up"); err != nil {
			return err
		}
		_, err = query(ctx, s, statement("upgrade.compare", from.Compare(to, began)), func(row chconn.Row) (struct{}, error) {
			return struct{}{}, row.Scan(&missing, &extra)
		})
		if err != nil || missing == 0 && extra == 0 {
			return err
		}
	}
	return fmt.Errorf("the copy of table %s has %d wrong and %d surplus rows: somebody changes it who takes no lock; stop that, and try again; the table was left as it is",
		from, missing, extra)
}

// copyLate copies what came into the old table after everything was copied: from an INSERT that was on its way
// while the tables were exchanged.
func (s *Store) copyLate(ctx context.Context, r replacement, margin time.Duration) error {
	from, to := chsql.StateTable{Table: r.beside, Layout: chsql.Meltano}, chsql.StateTable{Table: r.live, Layout: chsql.Versioned}
	for {
		result, err := s.db.Exec(ctx, statement("upgrade.late", from.CopyLateTo(to, r.mark.complete-margin.Milliseconds())))
		if err != nil {
			return err
		}
		if err := s.reached("late rows"); err != nil || result.WrittenRows == 0 {
			return err
		}
	}
}
