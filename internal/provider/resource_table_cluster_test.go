package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// What a server alone shows of clusters; what it cannot run is chsql's TestCluster.
func TestTable_cluster(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		invalid := func(line string, words ...string) resource.TestStep {
			return resource.TestStep{Config: s.config(table(unprotected, line)), PlanOnly: true, ExpectError: refused(words...)}
		}
		s.run(t,
			invalid(`  engine = "MergeTree"`, "Invalid engine"),
			invalid(`  engine = "ReplacingMergeTree('/a/{table}', '{replica}')"`, "Invalid engine"),
			invalid(`  engine = "ReplicatedReplacingMergeTree('/a', '{replica}')"`, "has to name {table} or {uuid}"),
			// The engine of the tests has no DDL worker.
			resource.TestStep{Config: s.config(table(unprotected, `  cluster = "ch-prod"`)), ExpectError: refused("Unable to create state table")},
			// Quorum and sequential reads do not concern tables of a single server.
			resource.TestStep{
				Config: s.config(table(unprotected, `  engine = "ReplacingMergeTree"`)+entryIn("dev:x", issues("T0")), "  quorum = true"),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("engine"), knownvalue.StringExact("ReplacingMergeTree")),
				},
				PostApplyFunc: func() { s.sentWithQuorum(t) },
			},
			resource.TestStep{Config: s.config(table(unprotected, `  engine = "ReplicatedReplacingMergeTree"`)), PlanOnly: true, ExpectError: refused("Unable to change engine of state table")},
		)
	})
}

// sentWithQuorum looks in the query log at what the write of the entry was sent with.
func (s scenario) sentWithQuorum(t *testing.T) {
	t.Helper()
	s.exec(t, "SYSTEM FLUSH LOGS")
	var quorum, sequential string
	err := s.conn.QueryRow(t.Context(), "SELECT any(Settings['insert_quorum']), any(Settings['select_sequential_consistency']) FROM system.query_log "+
		"WHERE type = 'QueryFinish' AND log_comment LIKE '%.write' AND has(tables, ?)", s.database+".state").Scan(&quorum, &sequential)
	if err != nil || quorum != "auto" || sequential != "1" {
		t.Errorf("insert_quorum %q, select_sequential_consistency %q, %v", quorum, sequential, err)
	}
}

func TestClusterAdvice(t *testing.T) {
	t.Parallel()
	got := clusterAdvice(&statestore.ClusterError{Cluster: "ch-prod", Unfinished: []string{"b:9000"}, Failed: []string{"c:9000: no space"}})
	for _, want := range []string{"not finished  b:9000", "failed        c:9000: no space", "system.distributed_ddl_queue"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}
