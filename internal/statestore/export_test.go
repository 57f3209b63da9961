package statestore

import (
	"context"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// Waiting counts the writes that wait for a group of the table to end.
func (s *Store) Waiting(at Address) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting[lane{table: at.table()}])
}

// AtStep has a function called at each step of an upgrade; its error ends the upgrade there, as a crash would.
func (s *Store) AtStep(do func(step string) error) { s.atStep = do }

// DDL runs a statement as one that changes tables on a cluster.
func (s *Store) DDL(ctx context.Context, cluster string, q chsql.Query) error {
	return s.ddl(ctx, "test.ddl", chsql.Cluster(cluster), q)
}
