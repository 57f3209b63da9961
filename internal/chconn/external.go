package chconn

import (
	"fmt"
	"regexp"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// identifier is what may name an external table or its column: over HTTP the names travel unquoted, as a URL's parameter
// and inside a list.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// externalTables encodes the tables for the driver.
func externalTables(tables []Table) ([]*ext.Table, error) {
	encoded := make([]*ext.Table, 0, len(tables))
	for _, t := range tables {
		if !identifier.MatchString(t.Name) {
			return nil, fmt.Errorf("external table %q: the name must be a plain identifier", t.Name)
		}
		columns := make([]func(*ext.Table) error, len(t.Columns))
		for i, c := range t.Columns {
			if !identifier.MatchString(c.Name) {
				return nil, fmt.Errorf("external table %s: column %q: the name must be a plain identifier", t.Name, c.Name)
			}
			columns[i] = ext.Column(c.Name, column.Type(c.Type))
		}
		table, err := ext.NewTable(t.Name, columns...)
		if err != nil {
			return nil, fmt.Errorf("external table %s: %w", t.Name, err)
		}
		for i, row := range t.Rows {
			if err := table.Append(row...); err != nil {
				return nil, fmt.Errorf("external table %s: row %d: %w", t.Name, i+1, err)
			}
		}
		encoded = append(encoded, table)
	}
	return encoded, nil
}
