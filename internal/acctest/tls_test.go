package acctest

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

func TestTLSProxy(t *testing.T) {
	// With a password: over HTTPS the driver takes an empty one for a login by certificate.
	server := EndpointOf(PrivateServer(t, embedded.Options{Users: []embedded.User{{Name: "u", Password: "p"}}}))
	server.Username, server.Password = "u", "p"
	plain := TLSProxy(t, server.NativeAddr(), TLSOptions{})
	named := TLSProxy(t, server.NativeAddr(), TLSOptions{ServerName: "db.example"})
	mutual := TLSProxy(t, server.NativeAddr(), TLSOptions{RequireClientCert: true})
	http := TLSProxy(t, server.HTTPAddr(), TLSOptions{})

	for _, test := range []struct {
		name       string
		proxy      *TLSServer
		authority  *TLSServer
		client     *TLSServer
		serverName string
		protocol   clickhouse.Protocol
		want       string // in the error; empty: it works
	}{
		{"native", plain, plain, nil, "", clickhouse.Native, ""},
		{"http", http, http, nil, "", clickhouse.HTTP, ""},
		{"another authority", plain, named, nil, "", clickhouse.Native, "unknown authority"},
		{"named", named, named, nil, "db.example", clickhouse.Native, ""},
		{"wrong name", named, named, nil, "other.example", clickhouse.Native, "valid for db.example"},
		{"name by default", named, named, nil, "", clickhouse.Native, "127.0.0.1"},
		{"client certificate", mutual, mutual, mutual, "", clickhouse.Native, ""},
		{"no client certificate", mutual, mutual, nil, "", clickhouse.Native, "certificate required"},
		{"a stranger's client certificate", mutual, mutual, plain, "", clickhouse.Native, "tls: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: test.serverName}
			if !config.RootCAs.AppendCertsFromPEM([]byte(test.authority.CACert)) {
				t.Fatal("no certificate in CACert")
			}
			if test.client != nil {
				pair, err := tls.X509KeyPair([]byte(test.client.ClientCert), []byte(test.client.ClientKey))
				if err != nil {
					t.Fatal(err)
				}
				config.Certificates = []tls.Certificate{pair}
			}
			conn, err := clickhouse.Open(&clickhouse.Options{
				Addr:     []string{test.proxy.Addr},
				Protocol: test.protocol,
				Auth:     clickhouse.Auth{Username: server.Username, Password: server.Password},
				TLS:      config,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			err = conn.Ping(t.Context())
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
