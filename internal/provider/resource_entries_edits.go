package provider

import (
	"context"
	"maps"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// edits are what makes of the entries in a state those of a plan, in the order of their ids. If the write policy is
// switched, no payload is written over one that is there.
func (m *entriesResourceModel) edits(plan, state declarations, known rows, switched bool) []statestore.Edit {
	var edits []statestore.Edit
	for _, id := range sortedIDs(union(plan, state)) {
		entry, planned := plan[id]
		prior, stored := state[id]
		edit := statestore.Edit{StateID: id, Expect: known.Versions[id]}
		switch {
		case !planned && !m.deletes(plan):
			continue
		case !planned:
			edit.Verb = statestore.EditDelete
		case !stored:
			edit.Verb = statestore.EditCreate
			if m.writePolicy() == policySeed {
				edit.Verb = statestore.EditSeed
			}
			edit.Completed, edit.Partial = valueOf(entry.Completed, entry.Completed != ""), valueOf(entry.Partial, entry.Partial != "")
		case switched:
			continue
		default:
			completed, partial := changedPayload(entry.Completed, prior.Completed), changedPayload(entry.Partial, prior.Partial)
			if !completed && !partial {
				continue
			}
			edit.Verb = statestore.EditUpdate
			edit.Completed, edit.Partial = valueOf(entry.Completed, completed), valueOf(entry.Partial, partial)
		}
		edits = append(edits, edit)
	}
	return edits
}

// deletes reports whether entries that a plan does not declare are deleted, or only forgotten. An exclusive table has no
// room for what is forgotten.
func (m *entriesResourceModel) deletes(plan declarations) bool {
	return deletionPolicies.of(m.DeletionPolicy) == deletionDelete || plan != nil && m.Exclusive.ValueBool()
}

func union(a, b declarations) declarations {
	if len(a) == 0 {
		return b
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// apply returns the entries of a state after edits, as far as those were applied, and which of them changed. The entries
// of a seed are what was declared, whatever is stored; declared is nil for others.
func (d declarations) apply(edits []statestore.Edit, applied map[string]statestore.Written, declared declarations) (declarations, map[string]bool) {
	next, changed := maps.Clone(d), map[string]bool{}
	for _, edit := range edits {
		written, ok := applied[edit.StateID]
		switch {
		case !ok:
		case edit.Verb == statestore.EditDelete:
			delete(next, edit.StateID)
		default:
			entry, seed := declared[edit.StateID]
			if !seed {
				entry = storedEntry(written.Entry)
			}
			next[edit.StateID], changed[edit.StateID] = entry, true
		}
	}
	return next, changed
}

// apply takes note of the versions that were written.
func (r rows) apply(applied map[string]statestore.Written) {
	for id, written := range applied {
		r.Versions[id] = written.Entry.Version
	}
}

// keep forgets the versions of entries that are not there any more.
func (r rows) keep(all declarations) {
	maps.DeleteFunc(r.Versions, func(id string, _ uint64) bool {
		_, ok := all[id]
		return !ok
	})
}

// movedTo checks that the rows of the state are found at the address of a plan, if that is another one.
func (m *entriesResourceModel) movedTo(ctx context.Context, store *statestore.Store, plan entriesResourceModel, known rows) error {
	if m.place() == plan.place() {
		return nil
	}
	found := make(map[string]uint64, len(known.Versions))
	err := store.Each(ctx, plan.Database.ValueString(), plan.Table.ValueString(), sortedIDs(known.Versions), func(e statestore.Entry) {
		found[e.StateID] = e.Version
	})
	if err != nil {
		return err
	}
	for _, id := range sortedIDs(known.Versions) {
		if found[id] != known.Versions[id] {
			return &moveError{from: m.address(id), to: plan.address(id), found: found[id]}
		}
	}
	return nil
}

// refresh takes over what is stored of the entries in the state: of those that match, if there is a pattern, and of all in
// the table, if it is exclusive. It is one query, and keeps nothing of a row that is as it was. The payloads of a seed stay
// what was declared.
func (m *entriesResourceModel) refresh(ctx context.Context, store *statestore.Store, pattern string, diags *diag.Diagnostics) (rows, error) {
	m.WritePolicy = writePolicies.known(m.WritePolicy)
	m.OnRewind = rewindPolicies.known(m.OnRewind)
	m.DeletionPolicy = deletionPolicies.known(m.DeletionPolicy)
	m.Exclusive = types.BoolValue(m.Exclusive.ValueBool())
	m.ID = types.StringValue(m.place())
	prior, err := m.declared()
	if err != nil {
		return rows{}, err
	}
	known := rows{Versions: make(map[string]uint64, len(prior)), Declared: m.writePolicy() == policySeed}
	next, changed := make(declarations, len(prior)), map[string]bool{}
	var unreadable []string
	visit := func(e statestore.Entry) {
		id := e.StateID
		entry, ok := prior[id]
		var readable bool
		switch {
		case !ok && !utf8.ValidString(id): // somebody else's, which Terraform could not even name
			return
		case !ok:
			entry = storedEntry(e)
			readable, changed[id] = entry.Completed != "" && entry.Partial != "", true
		case known.Declared:
			readable = true
		default:
			var same bool
			if same, readable = refreshEntry(&entry, e); !same {
				changed[id] = true
			}
		}
		if !readable {
			unreadable = append(unreadable, id)
		}
		next[id], known.Versions[id] = entry, e.Version
	}
	database, table := m.Database.ValueString(), m.Table.ValueString()
	switch {
	case pattern != "":
		err = store.EachMatch(ctx, database, table, statestore.Filter{Pattern: pattern}, visit)
	case m.Exclusive.ValueBool():
		err = store.EachMatch(ctx, database, table, statestore.Filter{Pattern: "*"}, visit)
	default:
		err = store.Each(ctx, database, table, sortedIDs(prior), visit)
	}
	if err != nil {
		return rows{}, err
	}
	if len(unreadable) > 0 {
		diags.AddWarning(several(unreadable, "holds no pipeline state", "hold no pipeline state"),
			"What is stored is not a JSON object, so Meltano cannot read it. Declare the right state to replace it.\n\n"+listed(unreadable))
	}
	if pattern != "" || len(changed) > 0 || len(next) != len(prior) {
		diags.Append(m.take(next, changed)...)
	}
	return known, nil
}

// refreshEntry takes over the payloads that are declared, where what is stored differs. It reports whether none did, and
// whether Meltano could read them.
func refreshEntry(entry *bookmark.Entry, stored statestore.Entry) (same, readable bool) {
	same, readable = true, true
	for _, payload := range []struct {
		text   *string
		stored *string
	}{{&entry.Completed, stored.Completed}, {&entry.Partial, stored.Partial}} {
		var now string
		if payload.stored != nil {
			now = *payload.stored
		}
		if *payload.text == "" || bookmark.Equal(*payload.text, now) {
			continue
		}
		same, *payload.text = false, storedPayload(payload.stored)
		readable = readable && *payload.text != ""
	}
	return same, readable
}
