package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// codeReadOnly is ClickHouse's exception code for what a user with readonly = 1 or 2 may not do.
const codeReadOnly = 164

// Codes of a replica that lags behind, where the provider's quorum is on.
const (
	codeQuorumPending = 286
	codeReplicaBehind = 289
)

// An attempt is what an operation was about to do, for the message if it fails.
type attempt struct {
	verb   string // "create"
	kind   string // "state entry"
	object string // the one that it is
	id     string // its import id
	server string // where
}

func onEntry(verb string, at statestore.Address, store *statestore.Store) attempt {
	return attempt{
		verb:   verb,
		kind:   "state entry",
		object: fmt.Sprintf("entry %q in table %s/%s", at.StateID, at.Database, at.Table),
		id:     at.String(),
		server: store.String(),
	}
}

// onEntries is an attempt at the entries of a table, given as database/name, that match a pattern.
func onEntries(verb, pattern, table string, store *statestore.Store) attempt {
	return attempt{verb: verb, kind: "state entries", object: fmt.Sprintf("the entries %q in table %s", pattern, table), server: store.String()}
}

// onApply is an attempt at many entries of a table, given as database/name.
func onApply(verb string, entries int, table string, store *statestore.Store) attempt {
	return attempt{verb: verb, kind: "state entries", object: fmt.Sprintf("%d entries in table %s", entries, table), id: table, server: store.String()}
}

func onTable(verb, id string, store *statestore.Store) attempt {
	return attempt{verb: verb, kind: "state table", object: "table " + id, id: id, server: store.String()}
}

// onLock is an attempt at the lock of state_ids in a table, given as database/name. A long list is cut short.
func onLock(verb string, stateIDs []string, table string, store *statestore.Store) attempt {
	const enough = 5
	var names []string
	for _, id := range stateIDs[:min(enough, len(stateIDs))] {
		names = append(names, fmt.Sprintf("%q", id))
	}
	if more := len(stateIDs) - enough; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return attempt{
		verb:   verb,
		kind:   "lock",
		object: fmt.Sprintf("the lock of %s in table %s", strings.Join(names, ", "), table),
		server: store.String(),
	}
}

// A moveError is an entry whose new address does not hold the row of its old one.
type moveError struct {
	from, to statestore.Address
	found    uint64 // version of the row that is there, zero for none
}

func (e *moveError) Error() string {
	if e.found == 0 {
		return fmt.Sprintf("entry %s is not at %s", e.from, e.to)
	}
	return fmt.Sprintf("entry %s is not at %s, which holds another version: %d", e.from, e.to, e.found)
}

// addError turns an error of the core into a diagnostic: what was attempted, what to do, and the error itself last.
// Neither the core's errors nor this hold a payload or a password.
func addError(diags *diag.Diagnostics, a attempt, err error) {
	paragraphs := []string{fmt.Sprintf("Tried to %s %s on %s.", a.verb, a.object, a.server)}
	if advice := advise(a, err); advice != "" {
		paragraphs = append(paragraphs, advice)
	}
	paragraphs = append(paragraphs, err.Error())
	diags.AddError(fmt.Sprintf("Unable to %s %s", a.verb, a.kind), strings.Join(paragraphs, "\n\n"))
}

// advise says what to do about an error. Causes that can stand behind others come last.
func advise(a attempt, err error) string {
	var (
		failed      *statestore.ApplyError
		exists      *statestore.ExistsError
		tableExists *statestore.TableExistsError
		replaced    *statestore.TableReplacedError
		tableBusy   *statestore.TableBusyError
		noUpgrade   *statestore.CannotUpgradeError
		cluster     *statestore.ClusterError
		noMerge     *statestore.NoMergeError
		noCleanup   *statestore.NoCleanupError
		noTable     *statestore.NoTableError
		unfit       *statestore.UnfitError
		newer       *statestore.MovedError
		elsewhere   *moveError
		busy        *statestore.BusyError
		notHeld     *statestore.NotHeldError
		lost        *statestore.LostError
		uncertain   *statestore.UncertainError
		server      *statestore.ServerError
		connect     *statestore.ConnectError
		noAnswer    *statestore.NoAnswerError
	)
	grant, denied := statestore.MissingGrant(err)
	switch {
	case errors.As(err, &failed):
		return adviseApply(a, failed)
	case errors.As(err, &exists):
		return fmt.Sprintf("A live entry is there already, with version %d. It was left as it is. If another resource of this configuration declares it, remove one of the two. If the pipeline shall go on from what is stored, set write_policy = \"seed\". Otherwise import it",
			exists.Version) + importCommands(a.id)
	case errors.As(err, &tableExists):
		return "A table is there already, with something in it or not just as declared. It was left as it is. To manage it, import it" + importCommands(a.id)
	case errors.As(err, &replaced):
		return "Somebody has dropped or moved the table since the last refresh, and another one has its name. Nothing was changed. Run plan again to see what is there."
	case errors.As(err, &tableBusy):
		return "Nothing was changed, because somebody works with the table:\n\n" + describeClaims(tableBusy.Claims) + "\n\nWait until they are done and try again. A lock whose holder is dead is stale after 300 s."
	case errors.As(err, &cluster):
		return clusterAdvice(cluster)
	case errors.As(err, &noUpgrade):
		return "The table was left as it is:\n\n  - " + strings.Join(noUpgrade.Reasons, "\n  - ")
	case errors.As(err, &noMerge):
		return "The server does not merge this table now. Merges may be stopped (SYSTEM START MERGES starts them again), the server may be ending, or another merge is under way: try again later. Nothing is lost; readers see the same with and without it."
	case errors.As(err, &noCleanup):
		if noCleanup.Layout != statestore.LayoutVersioned {
			return "Leave cleanup out: in this layout a delete removes the rows at once."
		}
		return "The server refuses to remove tombstones unless the table allows it, since deleted bookmarks can come back then. Read what cleanup risks; if you want it all the same, apply this to the clickhousestate_table resource and try again:\n\n  settings = {\n    " +
			noCleanup.Setting + " = \"1\"\n  }"
	case errors.As(err, &noTable):
		if noTable.Missing == "database" {
			return "Create the database first, or let clickhousestate_table create it with create_database = true. If the name is wrong, look at database here and in the provider's configuration."
		}
		return "Create it with a clickhousestate_table resource, and let this one depend on it: table = clickhousestate_table.<name>.name. If the name is wrong, look at database and table here and in the provider's configuration."
	case errors.Is(err, statestore.ErrNotFound):
		return "No entry is stored there: no pipeline has written it yet, or it was deleted. Where it may be absent, read clickhousestate_entries with the state id as its pattern: it is empty then."
	case errors.As(err, &unfit):
		return "The table was left as it is, because it has another shape:\n\n  - " + strings.Join(unfit.Reasons, "\n  - ")
	case errors.As(err, &newer):
		return "It was left as it is. A pipeline has probably run in between: run plan again and look at what it shows before you apply."
	case errors.As(err, &elsewhere):
		return "Changing database or table only follows a row that is there already, as after a table was renamed: rows are not copied from table to table. " +
			"Put the old values back, or make this a new resource and import it from where it is. If the table was renamed by hand, the rows may have moved on since: import them from the new table."
	case errors.As(err, &busy):
		return adviseBusy(busy)
	case errors.As(err, &notHeld):
		return adviseNotHeld(notHeld)
	case errors.As(err, &uncertain) && uncertain.Removed:
		return "The delete was sent, but could not be confirmed as what is stored now. Run plan again: it shows what is."
	case errors.As(err, &uncertain):
		return fmt.Sprintf("The write was sent as version %d, but could not be confirmed as what is stored now. Run plan again: it shows what is.", uncertain.Stamp)
	case errors.As(err, &lost):
		return "The lock was lost while it was held, so nothing is written under it any more. Run plan again to see what is stored, then apply. If nobody broke it and it happens again, look for a server or a network that stalls, or raise lock.stale_after."
	case denied:
		return "The user lacks a right. Somebody who may give it can run:\n\n  " + grant
	case errors.As(err, &server) && (server.Code == codeReplicaBehind || server.Code == codeQuorumPending):
		return "The replica that answered lags behind the others, and did not catch up within some seconds. Nothing was written. Try again, or look at system.replicas and system.replication_queue there."
	case errors.As(err, &server) && server.Code == codeReadOnly:
		return "The user may only read: the setting readonly is on for it. To plan, that is enough; to apply, use another user."
	case errors.As(err, &connect):
		return "" // it says what was used, and gives a hint
	case errors.Is(err, context.Canceled):
		return "The operation was interrupted. Run plan again to see what is stored."
	case errors.Is(err, context.DeadlineExceeded):
		return "The operation took longer than it may. Look at this resource's timeouts and at the provider's query_timeout, then run plan again to see what is stored."
	case errors.As(err, &noAnswer):
		return "The connection broke before the answer came, so it may have happened or not. Run apply again: it finds out."
	}
	return ""
}

// adviseApply says what to do about a batch of entries that failed, and names those that refused.
func adviseApply(a attempt, failed *statestore.ApplyError) string {
	var text strings.Builder
	switch {
	case failed.Done == 0 && errors.As(failed, new(*statestore.UncertainError)):
	case failed.Done == 0:
		text.WriteString("No entry was changed.")
	case a.verb == "create":
		fmt.Fprintf(&text, "%d of them are written, in batches of their own, but not in the state. The next apply takes over those that are as declared, and goes on.", failed.Done)
	default:
		fmt.Fprintf(&text, "%d of them are done, in batches of their own, and so in the state.", failed.Done)
	}
	var exist, moved, uncertain []string
	for _, err := range failed.Errs {
		var existsErr *statestore.ExistsError
		var movedErr *statestore.MovedError
		var uncertainErr *statestore.UncertainError
		switch {
		case errors.As(err, &existsErr):
			exist = append(exist, existsErr.Address.StateID)
		case errors.As(err, &movedErr):
			moved = append(moved, movedErr.Address.StateID)
		case errors.As(err, &uncertainErr):
			uncertain = append(uncertain, uncertainErr.Address.StateID)
		}
	}
	if len(exist) > 0 {
		fmt.Fprintf(&text, "\n\nLive entries are there already, and were left as they are:\n\n%s\n\n"+
			"If another resource declares them, remove one of the two. If pipelines have made them, write_policy = \"seed\" leaves them as they are. To manage them here, import what is there, all or what matches a pattern",
			listed(exist)) // importCommands ends the sentence
		text.WriteString(importCommands(a.id + "/*"))
	}
	if len(moved) > 0 {
		fmt.Fprintf(&text, "\n\nPipelines have probably run in between, and moved these:\n\n%s\n\nRun plan again and look at what it shows before you apply.", listed(moved))
	}
	if len(uncertain) > 0 {
		fmt.Fprintf(&text, "\n\nThese were sent, but could not be confirmed as what is stored now:\n\n%s\n\nRun plan again: it shows what is.", listed(uncertain))
	}
	if len(exist)+len(moved)+len(uncertain) == 0 {
		if advice := advise(a, failed.Errs[0]); advice != "" {
			text.WriteString("\n\n" + advice)
		}
	}
	return strings.TrimSpace(text.String())
}

func adviseBusy(busy *statestore.BusyError) string {
	switch {
	case busy.LockID == "":
		return "Others kept taking the lock. Try again, or wait longer with lock = { timeout = ... } in the provider's configuration."
	case busy.Since.IsZero():
		return "This configuration holds it already, by another clickhousestate_lock: name each state_id in one of them only."
	}
	return fmt.Sprintf("The lock is held by another, probably a pipeline that runs right now:\n\n  state_id  %s\n  holder    %s\n  lock_id   %s\n  since     %s, %s ago\n  stale     %s, unless it is renewed\n\n"+
		"Wait until it is done and try again, or wait longer with lock = { timeout = ... } in the provider's configuration. A lock that is stale is taken over. "+
		"If you know that its holder is dead, this statement breaks exactly that lock (so does the action clickhousestate_break_lock, with Terraform 1.14 or newer):\n\n  %s",
		hclQuote(busy.StateID), holderName(busy.Holder), busy.LockID, busy.Since.UTC().Format(time.RFC3339), busy.Now.Sub(busy.Since).Round(time.Second),
		busy.Stale.UTC().Format(time.RFC3339), busy.Break)
}

func adviseNotHeld(notHeld *statestore.NotHeldError) string {
	if len(notHeld.Held) == 0 {
		return "Nothing was removed: nobody holds a lock on this state_id."
	}
	return "Nothing was removed: that lock_id is not held. What is held now:\n\n" + describeClaims(notHeld.Held)
}

// clusterAdvice says which hosts are behind.
func clusterAdvice(cluster *statestore.ClusterError) string {
	lines := []string{"Not all hosts of the cluster have made the change:"}
	for _, host := range cluster.Unfinished {
		lines = append(lines, "  not finished  "+host)
	}
	for _, host := range cluster.Failed {
		lines = append(lines, "  failed        "+host)
	}
	return strings.Join(lines, "\n") + "\n\nHosts that are not finished may still make it: see system.distributed_ddl_queue. Apply again when they have."
}

// describeClaims lists locks, one on a line.
func describeClaims(claims []statestore.Claim) string {
	lines := make([]string, len(claims))
	for i, claim := range claims {
		lines[i] = fmt.Sprintf("  state_id %s, %s", hclQuote(claim.StateID), describeClaim(claim))
	}
	return strings.Join(lines, "\n")
}

// describeClaim says who holds a lock, on one line.
func describeClaim(claim statestore.Claim) string {
	return fmt.Sprintf("lock_id %s, held by %s, since %s (%s ago)",
		claim.LockID, holderName(claim.Holder), claim.LockedAt.UTC().Format(time.RFC3339), claim.Age.Truncate(time.Second))
}

// holderName is who holds a lock, for people.
func holderName(holder string) string {
	if holder == "" {
		return "a Meltano client, which leaves no name"
	}
	return holder
}

// importCommands shows how to import, as a command and as a block. Indented lines are not wrapped.
func importCommands(id string) string {
	return fmt.Sprintf(":\n\n  terraform import <address> %s\n\nor with this next to the resource:\n\n  import {\n    to = <address>\n    id = %s\n  }\n\nwhere <address> is the resource's.",
		shellQuote(id), hclQuote(id))
}

// shellQuote quotes for a POSIX shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// hclQuote writes a string as Terraform's language does.
func hclQuote(text string) string {
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteRune('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(text[i+1:], "{"):
			out.WriteRune(r)
			out.WriteRune(r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return `"` + out.String() + `"`
}

// sentence makes an error's text a sentence.
func sentence(err error) string {
	text := sentenceStart(err.Error())
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// sentenceStart makes the first letter a capital.
func sentenceStart(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
