package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
)

// These tests run the real Terraform with the real provider, each in processes of their own: what they are about is when
// Terraform opens and closes a lock, and what is left after signals and crashes.

// lockBlock is the configuration of an ephemeral lock on state_ids.
func lockBlock(stateIDs ...string) string {
	return fmt.Sprintf("ephemeral \"clickhousestate_lock\" \"window\" {\n  state_ids = split(\"|\", %q)\n}\n", strings.Join(stateIDs, "|"))
}

// entryBlock is the configuration of an entry, named like what follows the colon in its state_id.
func entryBlock(stateID, value string, lines ...string) string {
	_, name, _ := strings.Cut(stateID, ":")
	return fmt.Sprintf("resource \"clickhousestate_entry\" %q {\n  state_id = %q\n%s\n%s\n}\n", name, stateID, issues(value), strings.Join(lines, "\n"))
}

const insideWindow = "  depends_on = [ephemeral.clickhousestate_lock.window]"

// ours counts claims of the provider.
func (s scenario) ours(t *testing.T) uint64 {
	t.Helper()
	return s.count(t, "state_lock WHERE lock_id LIKE '00000000-0000-8%'")
}

// provider is the process that holds a lock, as its claim names it.
func (s scenario) provider(t *testing.T, stateID string) *os.Process {
	t.Helper()
	var holder string
	if err := s.conn.QueryRow(t.Context(), "SELECT any(holder) FROM "+s.database+".state_lock WHERE state_id = ?", stateID).Scan(&holder); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(` pid (\d+) terraform-provider-clickhousestate/`).FindStringSubmatch(holder)
	if found == nil {
		t.Fatalf("the holder of %s is %q, which names no process", stateID, holder)
	}
	pid, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	return process
}

// slowDown makes every write of the state table wait for an expression: a write is done when the views behind it are.
func (s scenario) slowDown(t *testing.T, expression string) {
	t.Helper()
	s.exec(t, fmt.Sprintf("CREATE MATERIALIZED VIEW %[1]s.slow ENGINE = Null AS SELECT %[2]s AS s FROM %[1]s.state", s.database, expression))
}

// writing tells whether an entry is being written.
func (s scenario) writing(t *testing.T) bool {
	t.Helper()
	var running uint64
	err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE endsWith(Settings['log_comment'], ' entry.create.write') AND position(query, ?) > 0",
		s.database).Scan(&running)
	if err != nil {
		t.Fatal(err)
	}
	return running > 0
}

// A maintenance window: the plan leaves nothing, entries of the same apply do not wait for its lock, others do.
func TestLock_window(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	window := newGate(t, "window")
	inside := "  depends_on = [terraform_data.window, ephemeral.clickhousestate_lock.window]"
	w := s.workspace(t, lockBlock("dev:a", "dev:b")+window.block("ephemeral.clickhousestate_lock.window")+
		entryBlock("dev:a", "T0", inside)+entryBlock("dev:b", "T0", inside))

	if output, code := w.Run(t, "plan"); code != 0 {
		t.Fatalf("plan ended with %d:\n%s", code, output)
	}
	if n := s.ours(t); n != 0 {
		t.Errorf("%d claims are left after the plan", n)
	}
	if n := s.statements(t, "lock.claim"); n != 1 {
		t.Errorf("the plan locked %d times, want once: the documentation says so", n)
	}

	apply := w.Start(t, "apply", "-auto-approve")
	window.await(t, apply)
	held := s.claims(t)
	if len(held) != 2 || held["dev:a"] != held["dev:b"] {
		t.Errorf("claims are %v, want one lock on both", held)
	}
	other := s.workspace(t, entryBlock("dev:a", "T9"), `  lock = { timeout = "2s", settle = "200ms", retry_interval = "200ms" }`)
	output, code := other.Run(t, "apply", "-auto-approve")
	if code == 0 {
		t.Errorf("another apply wrote inside the window:\n%s", output)
	}
	for _, words := range []string{`state_id  "dev:a"`, "lock_id   " + held["dev:a"], "terraform-provider-clickhousestate/dev", " ago", "DELETE FROM"} {
		if !strings.Contains(output, words) {
			t.Errorf("the error of the other apply does not say %q:\n%s", words, output)
		}
	}
	checkGaveUp(t, output, 2*time.Second)

	window.open(t)
	opened := time.Now()
	if output, code := apply.Wait(t); code != 0 {
		t.Fatalf("apply ended with %d:\n%s", code, output)
	}
	if took := time.Since(opened); took > 20*time.Second {
		t.Errorf("two entries took %s: they waited for their own lock", took)
	}
	if n := s.ours(t); n != 0 {
		t.Errorf("%d claims are left after the apply", n)
	}
	if live := s.live(t); len(live) != 2 || !strings.Contains(text(live["dev:a"].completed), `"T0"`) {
		t.Errorf("stored %v, want both entries of the first apply", live)
	}
}

// checkGaveUp checks how long an apply waited for a lock, as its error says it.
func checkGaveUp(t *testing.T, output string, timeout time.Duration) {
	t.Helper()
	found := regexp.MustCompile(`gave\s+up\s+after\s+(\S+s)`).FindStringSubmatch(output)
	if found == nil {
		t.Errorf("no word of how long it waited:\n%s", output)
		return
	}
	waited, err := time.ParseDuration(found[1])
	if err != nil || waited < timeout-time.Second || waited > timeout+2*time.Second {
		t.Errorf("gave up after %s, want about %s", found[1], timeout)
	}
}

// statements counts statements of an operation on the scenario's lock table, as the query log has them.
func (s scenario) statements(t *testing.T, operation string) (n uint64) {
	t.Helper()
	s.exec(t, "SYSTEM FLUSH LOGS")
	err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.query_log WHERE type = 'QueryFinish' AND position(log_comment, ?) > 0 AND has(tables, ?)",
		operation, s.database+".state_lock").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Ctrl-C while an entry waits for a lock, another one is being written, and an ephemeral lock is held: within 5 s nothing
// of ours is left. Then an apply that fails under the ephemeral lock, and leaves nothing either.
func TestLock_interrupted(t *testing.T) {
	for _, protocol := range []string{protocolNative, protocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			testInterrupted(t, protocol)
		})
	}
}

func testInterrupted(t *testing.T, protocol string) {
	t.Helper()
	s := newScenario(t, protocol)
	s.newTable(t)
	s.foreign(t, "dev:waits", foreignLockID, 0)
	s.slowDown(t, "sleep(3)")
	body := lockBlock("dev:held") + entryBlock("dev:slow", "T0", insideWindow) + entryBlock("dev:waits", "T0", insideWindow)
	w := s.workspace(t, body)
	apply := w.Start(t, "apply", "-auto-approve")
	await(t, time.Minute, "the write is under way", func() bool { return s.writing(t) })
	if claims := s.claims(t); len(claims) != 3 || claims["dev:waits"] != foreignLockID {
		t.Errorf("claims are %v, want two of ours and the foreign one", claims)
	}

	// A terminal sends it to both.
	signal(t, os.Interrupt, s.provider(t, "dev:held"), apply.Process)
	took := await(t, 5*time.Second, "no claim of ours is left", func() bool { return s.ours(t) == 0 })
	t.Logf("no claim of ours %s after Ctrl-C", took)
	if output, code := apply.Wait(t); code == 0 {
		t.Errorf("the interrupted apply ended well:\n%s", output)
	}
	if n := s.ours(t); n != 0 {
		t.Errorf("%d claims have come back", n)
	}

	s.exec(t, "DROP TABLE "+s.database+".slow SYNC")
	w.Configure(t, s.config(body, `  lock = { timeout = "2s", settle = "200ms" }`))
	output, code := w.Run(t, "apply", "-auto-approve")
	if code == 0 || !strings.Contains(output, foreignLockID) {
		t.Errorf("apply ended with %d, want an error about lock %s:\n%s", code, foreignLockID, output)
	}
	await(t, 5*time.Second, "no claim is left but the foreign one", func() bool {
		claims := s.claims(t)
		return len(claims) == 1 && claims["dev:waits"] == foreignLockID
	})
	if live := s.live(t); len(live) != 1 {
		t.Errorf("stored %v, want dev:slow alone", live)
	}
}

// A provider that is killed leaves its lock. Others wait for it until it is stale by the server's clock, and not longer.
func TestLock_killed(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	window := newGate(t, "window")
	w := s.workspace(t, lockBlock("dev:a")+window.block("ephemeral.clickhousestate_lock.window")+
		entryBlock("dev:a", "T0", "  depends_on = [terraform_data.window, ephemeral.clickhousestate_lock.window]"))
	apply := w.Start(t, "apply", "-auto-approve")
	window.await(t, apply)
	signal(t, os.Kill, s.provider(t, "dev:a"))
	window.open(t)
	if output, code := apply.Wait(t); code == 0 {
		t.Errorf("the apply without a provider ended well:\n%s", output)
	}
	lockID := s.claims(t)["dev:a"]

	config := entryBlock("dev:a", "T1")
	w = s.workspace(t, config, `  lock = { timeout = "2s", settle = "200ms" }`)
	output, code := w.Run(t, "apply", "-auto-approve")
	if code == 0 || lockID == "" || !regexp.MustCompile(`holder .* pid \d+ [^│]*lock_id   `+lockID+`[^│]*since .* ago[^│]*stale  `).MatchString(strings.ReplaceAll(output, "│", "")) {
		t.Errorf("apply ended with %d, want an error that names holder, lock %s, age and expiry:\n%s", code, lockID, output)
	}

	// Instead of waiting for five minutes, the test moves the claim back.
	const left = 4
	var lockedAt time.Time
	s.unlock(t)
	s.foreign(t, "dev:a", lockID, 300-left)
	if err := s.conn.QueryRow(t.Context(), "SELECT locked_at FROM "+s.database+".state_lock").Scan(&lockedAt); err != nil {
		t.Fatal(err)
	}
	w.Configure(t, s.config(config))
	if output, code := w.Run(t, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply ended with %d:\n%s", code, output)
	}
	if written := time.UnixMicro(int64(s.live(t)["dev:a"].version)); written.Before(lockedAt.Add(300 * time.Second)) {
		t.Errorf("written at %s, before the claim of %s was stale", written, lockedAt)
	}
	if claims := s.claims(t); len(claims) != 0 {
		t.Errorf("claims %v are left", claims)
	}
}

// A Terraform that is killed takes its provider with it, which releases its locks first; it would renew them for ever.
// A SIGTERM that reaches the provider as well, as when a job is cancelled, is Terraform's business.
func TestLock_orphaned(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	window := newGate(t, "window")
	apply := s.workspace(t, lockBlock("dev:a")+window.block("ephemeral.clickhousestate_lock.window")).Start(t, "apply", "-auto-approve")
	window.await(t, apply)
	provider := s.provider(t, "dev:a")
	signal(t, syscall.SIGTERM, provider)
	signal(t, os.Kill, apply.Process)
	await(t, 5*time.Second, "the lock is released", func() bool { return s.ours(t) == 0 })
	await(t, 5*time.Second, "the provider has ended", func() bool { return provider.Signal(syscall.Signal(0)) != nil })
	window.open(t)
}

// A lock is held beyond its lease, against a peer that sweeps and wants it. When it is removed by force, nothing more is
// written under it, and the apply fails.
func TestLock_lease(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	const lease = 10
	window, removed := newGate(t, "window"), newGate(t, "removed")
	w := s.workspace(t, lockBlock("dev:kept", "dev:lost")+window.block("ephemeral.clickhousestate_lock.window")+
		entryBlock("dev:kept", "T0", "  depends_on = [terraform_data.window, ephemeral.clickhousestate_lock.window]")+
		removed.block("clickhousestate_entry.kept")+
		entryBlock("dev:lost", "T0", "  depends_on = [terraform_data.removed, ephemeral.clickhousestate_lock.window]"),
		fmt.Sprintf(`  lock = { stale_after = "%ds" }`, lease))
	apply := w.Start(t, "apply", "-auto-approve")
	window.await(t, apply)
	lockID := s.claims(t)["dev:kept"]

	// Meltano's rule, with our lease in the place of its 300 s.
	peer := meltano.New(acctest.Conn(t), meltano.Options{
		Database: s.database, StaleAfter: lease, Settle: 200 * time.Millisecond, Retry: 500 * time.Millisecond, Timeout: lease * 3 / 2 * time.Second,
	})
	if _, err := peer.AcquireLock(t.Context(), "dev:kept"); !errors.Is(err, meltano.ErrLocked) {
		t.Errorf("the peer got %v, want that it gave up", err)
	}
	if claims := s.claims(t); lockID == "" || claims["dev:kept"] != lockID || claims["dev:lost"] != lockID {
		t.Errorf("claims are %v, want lock_id %s still", claims, lockID)
	}
	window.open(t)
	removed.await(t, apply)
	if live := s.live(t); len(live) != 1 || live["dev:kept"].completed == nil {
		t.Errorf("stored %v, want dev:kept, written under the lock", live)
	}

	// A renewal that is under way brings the claim back: it counts as removed when the next one has not found it either.
	var gone time.Time
	await(t, time.Minute, "the claims stay away", func() bool {
		if s.ours(t) > 0 {
			s.unlock(t)
			gone = time.Now()
		}
		return time.Since(gone) > lease*time.Second*3/10
	})
	removed.open(t)
	output, code := apply.Wait(t)
	if code == 0 || !refused("The lock was lost while it was held").MatchString(output) {
		t.Errorf("apply ended with %d, want an error about the lost lock:\n%s", code, output)
	}
	if !strings.Contains(output, "Renewal complete") {
		t.Errorf("Terraform has not renewed the lock:\n%s", output)
	}
	if rows := s.count(t, "state"); rows != 1 {
		t.Errorf("%d rows, want that of dev:kept alone", rows)
	}
	if claims := s.claims(t); len(claims) != 0 {
		t.Errorf("claims %v are left", claims)
	}
}

// Three applies and two Meltano clients want one lock, and each stays inside for a second.
func TestLock_race(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	journal := filepath.Join(t.TempDir(), "journal")
	var applies []*acctest.Command
	for range 3 {
		w := s.workspace(t, lockBlock("dev:race")+fmt.Sprintf(`resource "terraform_data" "inside" {
  provisioner "local-exec" {
    command = "echo enter >> '%[1]s'; sleep 1; echo exit >> '%[1]s'"
  }
%[2]s
}
`, journal, insideWindow), `  lock = { timeout = "2m" }`)
		applies = append(applies, w.Start(t, "apply", "-auto-approve"))
	}
	peers := make(chan error)
	for range 2 {
		// A peer that stalls for longer than its settle enters beside another peer, which is not what this is about.
		peer := meltano.New(acctest.Conn(t), meltano.Options{Database: s.database, Settle: 3 * time.Second, Timeout: 2 * time.Minute})
		go func() { peers <- enterAndExit(t.Context(), peer, journal) }()
	}
	for range 2 {
		if err := <-peers; err != nil {
			t.Error(err)
		}
	}
	for _, apply := range applies {
		if output, code := apply.Wait(t); code != 0 {
			t.Errorf("apply ended with %d:\n%s", code, output)
		}
	}
	got, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("enter\nexit\n", 5); string(got) != want {
		t.Errorf("the journal is %q, want one after the other", got)
	}
	if claims := s.claims(t); len(claims) != 0 {
		t.Errorf("claims %v are left", claims)
	}
}

// enterAndExit takes the lock as Meltano does, and stays inside for a second.
func enterAndExit(ctx context.Context, peer *meltano.Backend, journal string) error {
	lock, err := peer.AcquireLock(ctx, "dev:race")
	if err != nil {
		return err
	}
	note := func(line string) error {
		file, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = file.WriteString(line + "\n")
		return errors.Join(err, file.Close())
	}
	err = note("enter")
	time.Sleep(time.Second)
	return errors.Join(err, note("exit"), lock.Release(ctx))
}
