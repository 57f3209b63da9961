package chconn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

func TestDefaults(t *testing.T) {
	for _, tc := range []struct {
		config chconn.Config
		want   string
	}{
		{chconn.Config{Host: "h"}, `native connection to h:9000 (TLS off) as user "default"`},
		{chconn.Config{Host: "h", Secure: true}, `native connection to h:9440 (TLS on) as user "default"`},
		{chconn.Config{Host: "h", Protocol: chconn.HTTP}, `http connection to h:8123 (TLS off) as user "default"`},
		{chconn.Config{Host: "h", Protocol: chconn.HTTP, Secure: true}, `http connection to h:8443 (TLS on) as user "default"`},
		{chconn.Config{Host: "h", Port: 1234, Username: "tf", Password: "s3cret"}, `native connection to h:1234 (TLS off) as user "tf"`},
		{chconn.Config{Host: "::1"}, `native connection to [::1]:9000 (TLS off) as user "default"`},
		{chconn.Config{Host: "[::1]"}, `native connection to [::1]:9000 (TLS off) as user "default"`},
		{chconn.Config{Host: "fe80::1%eth0"}, `native connection to [fe80::1%eth0]:9000 (TLS off) as user "default"`},
	} {
		if got := newClient(t, tc.config).String(); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}

func TestConfigMistakes(t *testing.T) {
	pem, other := acctest.TLSProxy(t, "127.0.0.1:1", acctest.TLSOptions{}), acctest.TLSProxy(t, "127.0.0.1:1", acctest.TLSOptions{})
	for _, tc := range []struct {
		config chconn.Config
		want   string // the error's beginning
	}{
		{chconn.Config{}, "host: must not be empty"},
		{chconn.Config{Host: "https://u:s3cret@h"}, "host: must be a name or an address alone"},
		{chconn.Config{Host: "u:s3cret@h"}, "host: must be a name or an address alone"},
		{chconn.Config{Host: "h:9000"}, "host: must be a name or an address alone"},
		{chconn.Config{Host: "h", Port: -1}, "port: -1 is not between 1 and 65535"},
		{chconn.Config{Host: "h", Port: 65536}, "port: 65536 is not between 1 and 65535"},
		{chconn.Config{Host: "h", Protocol: "https"}, `protocol: "https" is neither "native" nor "http"`},
		{chconn.Config{Host: "h", HTTPPath: "/ch"}, `http_path: needs protocol = "http"`},
		{chconn.Config{Host: "h", Protocol: chconn.HTTP, HTTPPath: "/ch?x=1"}, "http_path: must be a path alone"},
		{chconn.Config{Host: "h", DialTimeout: -time.Second}, "dial_timeout: -1s is negative"},
		{chconn.Config{Host: "h", QueryTimeout: -time.Second}, "query_timeout: -1s is negative"},
		{chconn.Config{Host: "h", MaxOpenConns: -1}, "max_open_connections: -1 is negative"},
		{chconn.Config{Host: "h", TLS: chconn.TLS{InsecureSkipVerify: true}}, "tls: needs secure = true"},
		{chconn.Config{Host: "h", Secure: true, TLS: chconn.TLS{CACert: "/etc/pem.CACert"}}, "tls.ca_cert: x509: no PEM-encoded certificate found"},
		{chconn.Config{Host: "h", Secure: true, TLS: chconn.TLS{CACert: strings.Replace(pem.CACert, "MII", "AAA", 1)}}, "tls.ca_cert: x509: malformed certificate"},
		{chconn.Config{Host: "h", Secure: true, TLS: chconn.TLS{CACert: pem.ClientKey}}, `tls.ca_cert: x509: PEM block of type "PRIVATE KEY"`},
		{chconn.Config{Host: "h", Secure: true, TLS: chconn.TLS{ClientCert: pem.ClientCert}}, "tls.client_cert: needs tls.client_key"},
		{chconn.Config{Host: "h", Secure: true, TLS: chconn.TLS{ClientKey: pem.ClientKey}}, "tls.client_key: needs tls.client_cert"},
		{chconn.Config{Host: "h", Secure: true, TLS: chconn.TLS{ClientCert: pem.ClientCert, ClientKey: "s3cret"}}, "tls.client_cert, tls.client_key: tls: "},
		{chconn.Config{Host: "h", Secure: true, TLS: chconn.TLS{ClientCert: pem.ClientCert, ClientKey: other.ClientKey}}, "tls.client_cert, tls.client_key: tls: private key does not match public key"},
	} {
		_, err := chconn.New(tc.config)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}
