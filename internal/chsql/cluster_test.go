package chsql_test

import (
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// TestCluster pins what is sent to clusters: the engine of the tests can run none of it.
func TestCluster(t *testing.T) {
	const on = chsql.Cluster("ch-prod")
	state := chsql.StateTable{Table: chsql.Table{Database: "team-a", Name: "state"}, Layout: chsql.Versioned}
	lock := chsql.LockTable{Table: chsql.Table{Database: "team-a", Name: "state_lock"}, Strict: true}
	replicated := chsql.Engine{Name: "ReplicatedReplacingMergeTree"}
	withPath := chsql.Engine{Name: replicated.Name, Path: "/clickhouse/tables/{shard}/{table}", Replica: "{replica}"}
	for _, tt := range []struct {
		name string
		got  chsql.Query
		want string
	}{
		{"database", chsql.CreateDatabase("team-a", on), "CREATE DATABASE IF NOT EXISTS `team-a` ON CLUSTER `ch-prod`"},
		{"a macro", chsql.CreateDatabase("team-a", "{cluster}"), "CREATE DATABASE IF NOT EXISTS `team-a` ON CLUSTER `{cluster}`"},
		{"state table", state.Create(chsql.Definition{Engine: withPath, Cluster: on, Comment: "c", Settings: map[string]string{"a": "1"}}), `
CREATE TABLE ` + "`team-a`.`state` ON CLUSTER `ch-prod`" + `
(
    state_id String,
    partial_state Nullable(String),
    completed_state Nullable(String),
    updated_at DateTime64(3) DEFAULT now64(3),
    version UInt64 DEFAULT toUnixTimestamp64Micro(now64(6)),
    is_deleted UInt8 DEFAULT 0
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{table}', '{replica}', version, is_deleted)
ORDER BY state_id
SETTINGS ` + "`a`" + ` = 1
COMMENT ?`},
		{"lock table", lock.Create(chsql.Definition{Engine: replicated, Cluster: on}, true), `
CREATE TABLE IF NOT EXISTS ` + "`team-a`.`state_lock` ON CLUSTER `ch-prod`" + `
(
    state_id String,
    lock_id String,
    locked_at DateTime DEFAULT now(),
    holder String DEFAULT ''
)
ENGINE = ReplicatedReplacingMergeTree(locked_at)
ORDER BY (state_id, lock_id)
TTL locked_at + INTERVAL 300 SECOND
SETTINGS ` + "`enable_block_number_column` = 1, `enable_block_offset_column` = 1"},
		{"comment", state.ModifyComment("c", on), "ALTER TABLE `team-a`.`state` ON CLUSTER `ch-prod` MODIFY COMMENT ?"},
		{"settings", state.ModifySettings(map[string]string{"a": "1"}, on), "ALTER TABLE `team-a`.`state` ON CLUSTER `ch-prod` MODIFY SETTING `a` = 1"},
		{"reset", state.ResetSettings([]string{"a"}, on), "ALTER TABLE `team-a`.`state` ON CLUSTER `ch-prod` RESET SETTING `a`"},
		{
			"rename", chsql.Rename(on, chsql.Move{From: lock.Table, To: chsql.Table{Database: "b", Name: "s_lock"}}, chsql.Move{From: state.Table, To: chsql.Table{Database: "b", Name: "s"}}),
			"RENAME TABLE `team-a`.`state_lock` TO `b`.`s_lock`, `team-a`.`state` TO `b`.`s` ON CLUSTER `ch-prod`",
		},
		{"drop", state.Drop(on), "DROP TABLE IF EXISTS `team-a`.`state` ON CLUSTER `ch-prod` SYNC"},
	} {
		if want := strings.TrimPrefix(tt.want, "\n"); tt.got.Text != want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, tt.got.Text, want)
		}
		if tt.got.Settings["distributed_ddl_output_mode"] != "null_status_on_timeout" {
			t.Errorf("%s: settings %v", tt.name, tt.got.Settings)
		}
	}
	if alone := state.Drop(""); alone.Text != "DROP TABLE IF EXISTS `team-a`.`state` SYNC" || len(alone.Settings) != 0 {
		t.Errorf("on one server: %+v", alone)
	}
}
