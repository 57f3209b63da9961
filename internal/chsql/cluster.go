package chsql

import "strings"

// A Cluster is where DDL is carried out: on all hosts of that name, or on the server alone if it is empty. A macro such
// as {cluster} is the server's to expand.
type Cluster string

// on is the ON CLUSTER clause.
func (c Cluster) on() string {
	if c == "" {
		return ""
	}
	return " ON CLUSTER " + Ident(string(c))
}

// DDL is a statement that changes tables. On a cluster, it waits for all hosts and returns one row for each. Columns:
// host String, port UInt16, status Nullable(Int64), error Nullable(String), and two more; the status is NULL where a
// host is not done within the server's distributed_ddl_task_timeout.
func (c Cluster) ddl(text string, args ...any) Query {
	q := Query{Text: text, Args: args}
	if c != "" {
		q.Settings = map[string]string{"distributed_ddl_output_mode": "null_status_on_timeout"}
	}
	return q
}

// An Engine is how a table is stored: on one server, or on replicas.
type Engine struct {
	// Name is ReplacingMergeTree or ReplicatedReplacingMergeTree. Empty: the former.
	Name string
	// Path and Replica are where replicas find each other, macros and all. Both or neither: then the server's defaults.
	Path, Replica string
}

// clause is the engine with its columns.
func (e Engine) clause(columns ...string) string {
	arguments := columns
	if e.Path != "" {
		arguments = append([]string{quote(e.Path), quote(e.Replica)}, columns...)
	}
	name := e.Name
	if name == "" {
		name = "ReplacingMergeTree"
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// A Definition is what the caller may choose of a table.
type Definition struct {
	Engine   Engine
	Cluster  Cluster
	Comment  string
	Settings map[string]string
}

// create writes a CREATE TABLE; head ends before the name.
func (d Definition) create(head string, t Table, columns []Column, engine, rest string) Query {
	text := head + t.String() + d.Cluster.on() + "\n" + definitions(columns) + "\nENGINE = " + engine + "\n" + rest + settingsClause(d.Settings)
	if d.Comment == "" {
		return d.Cluster.ddl(text)
	}
	return d.Cluster.ddl(text+"\nCOMMENT ?", d.Comment)
}
