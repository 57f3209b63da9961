package statestore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A replacement is a table that takes the place of another one, which cannot be altered into it. The new one is
// made under another name beside the old one, filled, and exchanged for it. Its comment says whose place it takes,
// so that whoever finds the two tables knows how far it was:
//
//   - the one beside has the mark: begun. The old one is in use, so the one beside is dropped.
//   - the one in use has the mark: exchanged. The one beside is the old one, if its UUID is the one of the mark.
type replacement struct {
	live, beside chsql.Table
	mark         mark
	// found is what is there under the name of the one beside.
	found *description
	// done tells whether the new one is in use already.
	done bool
}

// A mark is the end of the comment of a table that takes the place of another one.
type mark struct {
	// uuid is the one of the table whose place it takes.
	uuid string
	// complete is when everything was copied, in Unix milliseconds of the server's clock. Zero: not yet.
	complete int64
}

const markStart, markEnd = "[clickhousestate: takes the place of ", "]"

// on returns a comment with the mark.
func (m mark) on(comment string) string {
	return comment + markStart + m.uuid + " " + strconv.FormatInt(m.complete, 10) + markEnd
}

// splitMark takes a comment and a mark apart. Without a mark, that is empty.
func splitMark(text string) (comment string, m mark) {
	i := strings.LastIndex(text, markStart)
	if i < 0 {
		return text, mark{}
	}
	inner, ok := strings.CutSuffix(text[i+len(markStart):], markEnd)
	uuid, complete, found := strings.Cut(inner, " ")
	millis, err := strconv.ParseInt(complete, 10, 64)
	if !ok || !found || err != nil {
		return text, mark{}
	}
	return text[:i], mark{uuid: uuid, complete: millis}
}

// besideName is the name of the one beside.
func besideName(table string) string { return table + "_upgrade" }

// replacing finds out how far the replacement of a table was. What has the name of the one beside and belongs to
// somebody else is a *CannotUpgradeError, unless there is nothing to do with it any more.
func (s *Store) replacing(ctx context.Context, live chsql.Table) (replacement, error) {
	r := replacement{live: live, beside: chsql.Table{Database: live.Database, Name: besideName(live.Name)}}
	found, err := s.describe(ctx, live.Database, live.Name, r.beside.Name)
	if err != nil {
		return r, err
	}
	there := found[live.Name]
	if there == nil {
		return r, &NoTableError{Database: live.Database, Table: live.Name, Missing: "table"}
	}
	r.found = found[r.beside.Name]
	if there.mark.uuid != "" {
		r.mark, r.done = there.mark, true
		if r.found != nil && r.found.uuid != r.mark.uuid {
			r.found = nil // Somebody else's.
		}
		return r, nil
	}
	r.mark.uuid = there.uuid
	if r.found != nil && r.found.mark.uuid != there.uuid {
		return r, &CannotUpgradeError{Database: live.Database, Table: live.Name, Reasons: []string{fmt.Sprintf(
			"the new table would be made under the name %s, which another table has", r.beside.Name)}}
	}
	return r, nil
}

// restart drops what was begun.
func (s *Store) restart(ctx context.Context, r replacement) error {
	if r.found == nil {
		return nil
	}
	return s.exec(ctx, "upgrade.restart", r.beside.Drop(""))
}

// exchange puts the new table into the place of the old one, and makes sure that it was these two.
func (s *Store) exchange(ctx context.Context, r *replacement) error {
	err := s.exec(ctx, "upgrade.exchange", chsql.Exchange(r.live, r.beside))
	after, settleErr := s.replacing(context.WithoutCancel(ctx), r.live)
	if settleErr == nil && after.done && after.mark.uuid == r.mark.uuid && after.found != nil {
		*r = after // Done, whatever became of the answer.
		return nil
	}
	if err != nil {
		return fmt.Errorf("exchange the tables: %w", err)
	}
	return fmt.Errorf("after the exchange, %s and %s are not the tables that they should be: somebody else has changed them as well", r.live, r.beside)
}

// finish drops the old table and takes the mark off the new one.
func (s *Store) finish(ctx context.Context, r replacement) error {
	found, err := s.describe(ctx, r.live.Database, r.live.Name, r.beside.Name)
	if err != nil {
		return err
	}
	if old := found[r.beside.Name]; old != nil && old.uuid == r.mark.uuid {
		if err := s.exec(ctx, "upgrade.drop", r.beside.Drop("")); err != nil {
			return err
		}
		if err := s.reached("dropped"); err != nil {
			return err
		}
	}
	there := found[r.live.Name]
	if there == nil || there.mark != r.mark {
		return nil
	}
	return s.exec(ctx, "upgrade.unmark", r.live.ModifyComment(there.comment, ""))
}

// reached is a step of an upgrade, at which a test may end it.
func (s *Store) reached(step string) error {
	if s.atStep == nil {
		return nil
	}
	return s.atStep(step)
}
