package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// cleanupTimeout bounds what is done on the server after an interrupt.
const cleanupTimeout = 30 * time.Second

// server is the ClickHouse that the demo works on.
type server struct {
	database string
	// terraform is the connection that Terraform is told; db may use another, as Meltano does.
	terraform chconn.Config
	db        *chconn.Client
	embedded  *embedded.Server
}

// startServer starts an embedded server, or takes the one that CLICKHOUSE_HOST names.
func startServer(ctx context.Context) (*server, error) {
	s := &server{}
	var ours chconn.Config
	if os.Getenv("CLICKHOUSE_HOST") != "" {
		config, err := fromEnvironment()
		if err != nil {
			return nil, err
		}
		s.terraform, ours = config, config
		s.database = "clickhousestate_demo_" + uuid.NewString()[:8]
	} else {
		child, err := embedded.Start(ctx, embedded.Options{})
		if err != nil {
			return nil, err
		}
		s.embedded, s.database = child, "meltano"
		s.terraform = chconn.Config{Host: child.Host, Port: child.NativePort, Protocol: chconn.Native}
		ours = chconn.Config{Host: child.Host, Port: child.HTTPPort, Protocol: chconn.HTTP}
	}
	var err error
	if s.db, err = chconn.New(ours); err != nil && s.embedded != nil {
		s.embedded.Stop()
	}
	return s, err
}

// fromEnvironment reads the variables that the provider reads, too.
func fromEnvironment() (chconn.Config, error) {
	config := chconn.Config{
		Host:     os.Getenv("CLICKHOUSE_HOST"),
		Protocol: chconn.Protocol(os.Getenv("CLICKHOUSE_PROTOCOL")),
		Username: os.Getenv("CLICKHOUSE_USER"),
		Password: os.Getenv("CLICKHOUSE_PASSWORD"),
	}
	var err error
	if port := os.Getenv("CLICKHOUSE_PORT"); port != "" {
		if config.Port, err = strconv.Atoi(port); err != nil {
			return config, fmt.Errorf("CLICKHOUSE_PORT: %w", err)
		}
	}
	if secure := os.Getenv("CLICKHOUSE_SECURE"); secure != "" {
		if config.Secure, err = strconv.ParseBool(secure); err != nil {
			return config, fmt.Errorf("CLICKHOUSE_SECURE: %w", err)
		}
	}
	return config, nil
}

// environment tells Terraform and the example where to work. The example protects its table unless told otherwise.
func (s *server) environment() []string {
	c := s.terraform
	return []string{
		"CLICKHOUSE_HOST=" + c.Host,
		"CLICKHOUSE_PORT=" + portText(c.Port),
		"CLICKHOUSE_PROTOCOL=" + string(c.Protocol),
		"CLICKHOUSE_USER=" + c.Username,
		"CLICKHOUSE_PASSWORD=" + c.Password,
		"CLICKHOUSE_SECURE=" + strconv.FormatBool(c.Secure),
		"TF_VAR_database=" + s.database,
		"TF_VAR_deletion_protection=false",
	}
}

// portText is empty for the usual port.
func portText(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}

// stop ends the embedded server, or drops the database that was made on a server of one's own.
func (s *server) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	var err error
	if s.embedded == nil {
		err = s.exec(ctx, "DROP DATABASE IF EXISTS "+s.database+" SYNC")
	}
	_ = s.db.Close() // nothing is under way there any more
	if s.embedded != nil {
		s.embedded.Stop()
	}
	return err
}

func (s *server) String() string { return s.db.String() }

func (s *server) table() string     { return s.database + ".state" }
func (s *server) lockTable() string { return s.database + ".state_lock" }

// exec runs a statement that returns nothing.
func (s *server) exec(ctx context.Context, text string, args ...any) error {
	_, err := s.db.Exec(ctx, chconn.Statement{Operation: "demo", Text: text, Args: args})
	return err
}

// one reads one text.
func (s *server) one(ctx context.Context, text string, args ...any) (value string, err error) {
	err = s.db.Query(ctx, chconn.Statement{Operation: "demo", Text: text, Args: args}, func(row chconn.Row) error {
		return row.Scan(&value)
	})
	return value, err
}
