package chconn

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// Protocol is how a client talks to the server.
type Protocol string

// The protocols that ClickHouse and this package speak.
const (
	Native Protocol = "native"
	HTTP   Protocol = "http"
)

// Protocols lists every protocol, for validators and descriptions.
func Protocols() []Protocol { return []Protocol{Native, HTTP} }

// What a [Config] means where it says nothing.
const (
	DefaultDialTimeout  = 10 * time.Second
	DefaultQueryTimeout = 5 * time.Minute
	DefaultMaxOpenConns = 10
	DefaultUsername     = "default"
)

// DefaultPort is the port on which a ClickHouse server usually speaks a protocol, with TLS or without.
func DefaultPort(protocol Protocol, secure bool) int {
	switch {
	case protocol == HTTP && secure:
		return 8443
	case protocol == HTTP:
		return 8123
	case secure:
		return 9440
	default:
		return 9000
	}
}

// Config says where the server is and how to talk to it.
type Config struct {
	// Host is a name or an address, without a port.
	Host string
	// Port is by default the usual one of the protocol, with TLS or without.
	Port int
	// Protocol is [Native] by default.
	Protocol Protocol
	// Username is [DefaultUsername] by default.
	Username, Password string
	// Secure turns TLS on.
	Secure bool
	// TLS refines Secure.
	TLS TLS
	// HTTPPath is the path of the server behind an HTTP gateway, with or without the leading slash.
	HTTPPath string
	// DialTimeout bounds opening a connection: TCP, TLS and the greeting together.
	DialTimeout time.Duration
	// QueryTimeout bounds a statement that has no timeout of its own.
	QueryTimeout time.Duration
	// Quorum makes writes and reads of replicated tables agree, whichever replica answers: an INSERT is acknowledged
	// by a majority, and a SELECT is refused by a replica that does not have it yet. Other tables are not concerned.
	Quorum bool
	// MaxOpenConns bounds the statements that are on their way at the same time.
	MaxOpenConns int
	// Version is the provider's, shown to the server in the client's name and in log_comment.
	Version string
	// Logger gets a line at debug level for every statement. Nil: no log.
	Logger *slog.Logger
}

// TLS says whom to trust and who we are.
type TLS struct {
	// CACert is PEM text: the authorities to trust instead of the system's.
	CACert string
	// ClientCert and ClientKey are PEM text: who we are. Both or neither.
	ClientCert, ClientKey string
	// ServerName is the name that the server's certificate has to carry, where it is not the host.
	ServerName string
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
}

// withDefaults fills in what the config leaves open, and refuses what cannot work. Its errors begin with the attribute at fault.
func (c Config) withDefaults() (Config, error) {
	switch c.Protocol {
	case "":
		c.Protocol = Native
	case Native, HTTP:
	default:
		return c, fmt.Errorf("protocol: %q is neither %q nor %q", c.Protocol, Native, HTTP)
	}

	c.Host = strings.TrimSuffix(strings.TrimPrefix(c.Host, "["), "]")
	if c.Host == "" {
		return c, errors.New("host: must not be empty")
	}
	if strings.ContainsAny(c.Host, "/@ ") || strings.Contains(c.Host, ":") && net.ParseIP(c.Host) == nil && !strings.Contains(c.Host, "%") {
		// Not repeated here: what was put in by mistake may be a URI with a password.
		return c, errors.New("host: must be a name or an address alone, without scheme, port or path")
	}
	if c.Port == 0 {
		c.Port = DefaultPort(c.Protocol, c.Secure)
	}
	if c.Port < 1 || c.Port > 65535 {
		return c, fmt.Errorf("port: %d is not between 1 and 65535", c.Port)
	}

	if c.HTTPPath != "" && c.Protocol != HTTP {
		return c, fmt.Errorf("http_path: needs protocol = %q", HTTP)
	}
	if strings.ContainsAny(c.HTTPPath, "?#") {
		return c, errors.New("http_path: must be a path alone, without a query or fragment")
	}
	if c.HTTPPath != "" && !strings.HasPrefix(c.HTTPPath, "/") {
		c.HTTPPath = "/" + c.HTTPPath
	}

	if c.Username == "" {
		c.Username = DefaultUsername
	}
	for _, limit := range []struct {
		attribute string
		value     *time.Duration
		byDefault time.Duration
	}{
		{"dial_timeout", &c.DialTimeout, DefaultDialTimeout},
		{"query_timeout", &c.QueryTimeout, DefaultQueryTimeout},
	} {
		if *limit.value < 0 {
			return c, fmt.Errorf("%s: %s is negative", limit.attribute, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.byDefault
		}
	}
	if c.MaxOpenConns < 0 {
		return c, fmt.Errorf("max_open_connections: %d is negative", c.MaxOpenConns)
	}
	if c.MaxOpenConns == 0 {
		c.MaxOpenConns = DefaultMaxOpenConns
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// addr is host:port.
func (c Config) addr() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

// tlsConfig is nil where TLS is off. Its errors begin with the attribute at fault and never hold a key.
func (c Config) tlsConfig() (*tls.Config, error) {
	if !c.Secure {
		// Whoever says whom to trust believes that the connection is encrypted.
		if c.TLS != (TLS{}) {
			return nil, errors.New("tls: needs secure = true")
		}
		return nil, nil
	}
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.TLS.ServerName,
		InsecureSkipVerify: c.TLS.InsecureSkipVerify, //nolint:gosec // asked for, and off by default
	}
	if config.ServerName == "" {
		config.ServerName = c.Host
	}
	if c.TLS.CACert != "" {
		roots, err := parseCertificates(c.TLS.CACert)
		if err != nil {
			return nil, fmt.Errorf("tls.ca_cert: %w", err)
		}
		config.RootCAs = roots
	}
	switch {
	case c.TLS.ClientCert == "" && c.TLS.ClientKey == "":
	case c.TLS.ClientKey == "":
		return nil, errors.New("tls.client_cert: needs tls.client_key")
	case c.TLS.ClientCert == "":
		return nil, errors.New("tls.client_key: needs tls.client_cert")
	default:
		pair, err := tls.X509KeyPair([]byte(c.TLS.ClientCert), []byte(c.TLS.ClientKey))
		if err != nil {
			return nil, fmt.Errorf("tls.client_cert, tls.client_key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// parseCertificates reads every certificate of a PEM text. The standard library's own reader skips what it cannot read,
// and the mistake would come out much later, as an unknown authority.
func parseCertificates(text string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	count := 0
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("x509: PEM block of type %q where a CERTIFICATE is expected", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		pool.AddCert(certificate)
		count++
	}
	if count == 0 {
		return nil, errors.New("x509: no PEM-encoded certificate found")
	}
	return pool, nil
}
