package statestore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestClusterHosts reads the answer of a statement ON CLUSTER. The engine of the tests can run none, so it is made up by a
// SELECT of the same columns and types, which are those of the server's documentation.
func TestClusterHosts(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		s := open(t, protocol)
		answer := func(rows string) error {
			q := chsql.Query{Text: "SELECT host, port, status, error, toUInt64(0), toUInt64(0) FROM values(" +
				"'host String, port UInt16, status Nullable(Int64), error Nullable(String)', " + rows + ")"}
			q.Settings = chsql.CreateDatabase("x", "c").Settings // which the server has to know
			return s.DDL(t.Context(), "c", q)
		}
		if err := answer("('a', 9000, 0, ''), ('b', 9000, 0, NULL)"); err != nil {
			t.Errorf("all done: %v", err)
		}
		var cluster *statestore.ClusterError
		err := answer("('a', 9000, 0, ''), ('b', 9000, NULL, NULL), ('::1', 9001, 243, 'no space left'), ('c', 9000, NULL, NULL)")
		if !errors.As(err, &cluster) || !slices.Equal(cluster.Unfinished, []string{"b:9000", "c:9000"}) || !slices.Equal(cluster.Failed, []string{"[::1]:9001: no space left"}) {
			t.Errorf("not all done: %v", err)
		}
	})
}
