package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// permissions is what the guide promises: for each of its blocks of GRANTs, in its order, what a user can do with them.
var permissions = []struct {
	name string
	// beside are the blocks that the user needs as well.
	beside []int
	do     func(ctx context.Context, s *statestore.Store, database, id string) error
}{
	{"plan and refresh", nil, refresh},
	{"apply entries", nil, applyEntry},
	{"apply tables", nil, applyTable},
	{"change tables", []int{2}, changeTable},
	{"rename tables", []int{2}, renameTable},
	{"create the database", []int{2}, createDatabase},
	{"look at the table", nil, lookAtTable},
	{"optimize the table", []int{6}, optimizeTable},
	{"look at locks", nil, lookAtLocks},
	{"hold locks", nil, holdLock},
	{"break a lock", nil, breakLock},
	{"delete in layout meltano", []int{1}, deleteRemoves},
	{"upgrade", []int{1, 2}, upgrade},
}

func refresh(ctx context.Context, s *statestore.Store, database, _ string) error {
	if _, err := s.Table(ctx, statestore.TableIdentity{Database: database, Name: "state"}); err != nil {
		return err
	}
	if _, err := s.Read(ctx, statestore.Address{Database: database, Table: "state", StateID: "dev:there"}); err != nil {
		return err
	}
	_, err := s.List(ctx, database, "state", statestore.Filter{Pattern: "*"})
	return err
}

func applyEntry(ctx context.Context, s *statestore.Store, database, id string) error {
	at := statestore.Address{Database: database, Table: "state", StateID: id}
	first, second := `{"singer_state": 1}`, `{"singer_state": 2}`
	written, err := s.Create(ctx, at, &first, nil)
	if err == nil && written.Unreleased == nil {
		written, err = s.Update(ctx, at, written.Entry.Version, statestore.Set(&second), statestore.Keep())
	}
	if err == nil && written.Unreleased == nil {
		written, err = s.Delete(ctx, at, written.Entry.Version)
	}
	if err == nil && written.Unreleased == nil {
		written, err = s.Create(ctx, at, &first, nil)
	}
	if err == nil && written.Unreleased == nil {
		_, err = s.Clear(ctx, database, "state", id)
	}
	if err == nil && written.Unreleased != nil {
		return written.Unreleased
	}
	return err
}

// deleteRemoves deletes an entry of a table that Meltano made.
func deleteRemoves(ctx context.Context, s *statestore.Store, database, id string) error {
	at := statestore.Address{Database: database, Table: "state", StateID: id}
	state := `{"singer_state": 1}`
	written, err := s.Create(ctx, at, &state, nil)
	if err == nil {
		_, err = s.Delete(ctx, at, written.Entry.Version)
	}
	return err
}

// upgrade upgrades what is there, which it can do once only.
func upgrade(ctx context.Context, s *statestore.Store, database, id string) error {
	if id == "dev:http" {
		return nil
	}
	_, err := s.AlterTable(ctx, statestore.TableIdentity{Database: database, Name: "state"},
		statestore.TableChange{Layout: statestore.LayoutVersioned, LockLayout: statestore.LayoutStrict})
	return err
}

func applyTable(ctx context.Context, s *statestore.Store, database, _ string) error {
	return createAndDrop(ctx, s, statestore.TableSpec{Database: database, Name: "state"}, nil)
}

func changeTable(ctx context.Context, s *statestore.Store, database, _ string) error {
	return createAndDrop(ctx, s, statestore.TableSpec{Database: database, Name: "state"}, func() error {
		comment := "changed"
		_, err := s.AlterTable(ctx, statestore.TableIdentity{Database: database, Name: "state"}, statestore.TableChange{Comment: &comment})
		if err == nil {
			_, err = s.AlterTable(ctx, statestore.TableIdentity{Database: database, Name: "state"}, statestore.TableChange{Set: map[string]string{"min_age_to_force_merge_seconds": "60"}})
		}
		if err == nil {
			_, err = s.AlterTable(ctx, statestore.TableIdentity{Database: database, Name: "state"}, statestore.TableChange{Reset: []string{"min_age_to_force_merge_seconds"}})
		}
		return err
	})
}

// renameTable cannot undo what it has done, so it does it over one protocol only.
func renameTable(ctx context.Context, s *statestore.Store, database, id string) error {
	if id == "dev:http" {
		return nil
	}
	_, _, err := s.CreateTable(ctx, statestore.TableSpec{Database: database, Name: "state"})
	if err == nil {
		_, err = s.AlterTable(ctx, statestore.TableIdentity{Database: database, Name: "state"}, statestore.TableChange{Name: "renamed"})
	}
	return err
}

func createDatabase(ctx context.Context, s *statestore.Store, database, _ string) error {
	return createAndDrop(ctx, s, statestore.TableSpec{Database: database, Name: "state", CreateDatabase: true}, nil)
}

func createAndDrop(ctx context.Context, s *statestore.Store, spec statestore.TableSpec, between func() error) error {
	_, _, err := s.CreateTable(ctx, spec)
	if err == nil && between != nil {
		err = between()
	}
	if err == nil {
		err = s.DropTable(ctx, statestore.TableIdentity{Database: spec.Database, Name: spec.Name})
	}
	return err
}

func lookAtTable(ctx context.Context, s *statestore.Store, database, _ string) error {
	_, err := s.Health(ctx, statestore.TableIdentity{Database: database, Name: "state"})
	return err
}

func optimizeTable(ctx context.Context, s *statestore.Store, database, _ string) error {
	_, _, err := s.Optimize(ctx, statestore.TableIdentity{Database: database, Name: "state"}, false)
	return err
}

func lookAtLocks(ctx context.Context, s *statestore.Store, database, _ string) error {
	_, err := s.Locks(ctx, database, "state", nil)
	return err
}

func holdLock(ctx context.Context, s *statestore.Store, database, id string) error {
	hold, err := s.Hold(ctx, database, "state", []string{id}, 0)
	if err != nil {
		return err
	}
	return hold.Release(ctx)
}

func breakLock(ctx context.Context, s *statestore.Store, database, id string) error {
	_, err := s.BreakLock(ctx, statestore.Address{Database: database, Table: "state", StateID: "locked " + id}, "rival of "+id)
	return err
}

// An account is a user with the grants of one block, and a database of its own. Lacks is a right that it was not given.
type account struct {
	block          int
	name, database string
	grants         []string
	lacks          string
}

// TestPermissions holds the guide to its word: its grants are enough over both protocols, and without any one of them
// it does not work.
func TestPermissions(t *testing.T) {
	blocks := guideGrants(t)
	if len(blocks) != len(permissions) {
		t.Fatalf("the guide has %d blocks of grants, expected %d", len(blocks), len(permissions))
	}
	var (
		accounts []account
		users    []embedded.User
	)
	add := func(block int, lacks string) {
		a := account{block: block, name: fmt.Sprintf("user_%d", len(users)), database: fmt.Sprintf("meltano_%d", len(users)), lacks: lacks}
		for _, source := range append(permissions[block].beside, block) {
			for _, grant := range blocks[source] {
				if grant != lacks {
					a.grants = append(a.grants, strings.Replace(grant, " meltano.", " "+a.database+".", 1))
				}
			}
		}
		accounts = append(accounts, a)
		users = append(users, embedded.User{Name: a.name, Grants: a.grants})
	}
	for block, grants := range blocks {
		add(block, "")
		for _, grant := range grants {
			// The embedded server has the defaults of the engine, with which these two need no right. The configuration
			// that servers are packaged with asks for them.
			if !strings.Contains(grant, " ON system.") && !strings.Contains(grant, "TABLE ENGINE") {
				add(block, grant)
			}
		}
	}

	server := acctest.PrivateServer(t, embedded.Options{Users: users})
	prepare(t, server, accounts)
	for _, a := range accounts {
		if a.lacks == "" {
			t.Run(permissions[a.block].name, func(t *testing.T) {
				for _, protocol := range statestore.Protocols() {
					if err := permissions[a.block].do(t.Context(), open(t, server, a.name, protocol), a.database, "dev:"+string(protocol)); err != nil {
						t.Errorf("%s: the grants are not enough: %v", protocol, err)
					}
				}
			})
			continue
		}
		t.Run(permissions[a.block].name+" without "+a.lacks, func(t *testing.T) {
			if err := permissions[a.block].do(t.Context(), open(t, server, a.name, statestore.Protocols()[0]), a.database, "dev:x"); err == nil {
				t.Error("it works all the same: the grant is too much")
			}
		})
	}
}

// prepare makes what each account is to find.
func prepare(t *testing.T, server *embedded.Server, accounts []account) {
	t.Helper()
	conn, store := acctest.EndpointOf(server).Conn(t), open(t, server, "default", statestore.Protocols()[0])
	state := `{"singer_state": {}}`
	for _, a := range accounts {
		var err error
		switch permissions[a.block].name {
		case "create the database":
		case "apply tables", "change tables", "rename tables":
			err = conn.Exec(t.Context(), "CREATE DATABASE "+a.database)
		default:
			spec := statestore.TableSpec{Database: a.database, Name: "state", CreateDatabase: true}
			switch permissions[a.block].name {
			case "delete in layout meltano":
				spec.Layout = statestore.LayoutMeltano
			case "upgrade":
				spec.Layout, spec.LockLayout = statestore.LayoutMeltano, statestore.LayoutMeltano
			}
			_, _, err = store.CreateTable(t.Context(), spec)
			if err == nil {
				_, err = store.Create(t.Context(), statestore.Address{Database: a.database, Table: "state", StateID: "dev:there"}, &state, nil)
			}
			if err == nil {
				err = conn.Exec(t.Context(), "INSERT INTO "+a.database+".state_lock (state_id, lock_id) "+
					"SELECT 'locked ' || id, 'rival of ' || id FROM (SELECT arrayJoin(['dev:native', 'dev:http', 'dev:x']) AS id)")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, server *embedded.Server, user string, protocol statestore.Protocol) *statestore.Store {
	t.Helper()
	ports := map[statestore.Protocol]int{"native": server.NativePort, "http": server.HTTPPort}
	store, err := statestore.Open(statestore.Config{Connection: statestore.Connection{
		Host: server.Host, Port: ports[protocol], Protocol: protocol, Username: user,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

var (
	sqlBlock   = regexp.MustCompile("(?s)```sql\n(.*?)```")
	grantLine  = regexp.MustCompile(`^GRANT (.+) ON (\S+) TO terraform;$`)
	privileges = regexp.MustCompile(`[A-Z ]+(?:\([^)]*\))?`)
)

// guideGrants reads the guide: for each block of SQL, one statement for each right.
func guideGrants(t *testing.T) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../templates/guides/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range sqlBlock.FindAllStringSubmatch(string(text), -1) {
		var grants []string
		for line := range strings.Lines(block[1]) {
			parts := grantLine.FindStringSubmatch(strings.TrimSpace(line))
			if parts == nil {
				t.Fatalf("not a grant to the user terraform: %q", line)
			}
			for _, privilege := range privileges.FindAllString(parts[1], -1) {
				grants = append(grants, "GRANT "+strings.TrimSpace(privilege)+" ON "+parts[2])
			}
		}
		blocks = append(blocks, grants)
	}
	return blocks
}
