package statestore

import (
	"context"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// Waiting counts the writes that wait for a group of the table to end, and WaitingReads the reads.
func (s *Store) Waiting(at Address) int { return s.writes.count(at) }

func (s *Store) WaitingReads(at Address) int { return s.reads.count(at) }

func (g *grouper) count(at Address) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q, busy := g.busy[lane{table: at.table()}]; busy {
		return len(q.waiting)
	}
	return 0
}

// AtStep has a function called at each step of an upgrade; its error ends the upgrade there, as a crash would.
func (s *Store) AtStep(do func(step string) error) { s.atStep = do }

// DDL runs a statement as one that changes tables on a cluster.
func (s *Store) DDL(ctx context.Context, cluster string, q chsql.Query) error {
	return s.ddl(ctx, "test.ddl", chsql.Cluster(cluster), q)
}
