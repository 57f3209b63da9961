package provider

import (
	"context"
	"math/big"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// attrs are attributes as a configuration names them. What is missing is null.
type attrs map[string]any

// unknown is a value that is known after apply.
var unknown = tftypes.UnknownValue

// object makes a value of attributes.
func object(t *testing.T, of tftypes.Type, from any) tftypes.Value {
	t.Helper()
	members, ok := from.(attrs)
	typ, isObject := of.(tftypes.Object)
	switch {
	case ok && isObject:
		values := map[string]tftypes.Value{}
		for name, memberType := range typ.AttributeTypes {
			values[name] = object(t, memberType, members[name])
		}
		for name := range members {
			if _, found := values[name]; !found {
				t.Fatalf("no attribute %s", name)
			}
		}
		return tftypes.NewValue(of, values)
	case from == nil, from == unknown:
		return tftypes.NewValue(of, from)
	}
	if n, isInt := from.(int); isInt {
		from = big.NewFloat(float64(n))
	}
	return tftypes.NewValue(of, from)
}

// providerConfig is a provider's configuration.
func providerConfig(t *testing.T, p *Provider, a attrs) tfsdk.Config {
	t.Helper()
	var resp provider.SchemaResponse
	p.Schema(t.Context(), provider.SchemaRequest{}, &resp)
	return tfsdk.Config{Schema: resp.Schema, Raw: object(t, resp.Schema.Type().TerraformType(t.Context()), a)}
}

// newTestProvider returns a provider that sees no environment but this.
func newTestProvider(t *testing.T, environment map[string]string) *Provider {
	t.Helper()
	p := New("test")
	p.getenv = func(name string) string { return environment[name] }
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// said returns a diagnostic as one text, its attribute first.
func said(d diag.Diagnostic) string {
	text := d.Summary() + ": " + d.Detail()
	if withPath, ok := d.(diag.DiagnosticWithPath); ok {
		text = withPath.Path().String() + ": " + text
	}
	return text
}

func TestProvider_validate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config attrs
		want   string // attribute and a word of the message; empty: valid
	}{
		"nothing":                  {config: attrs{}},
		"everything unknown":       {config: attrs{"host": unknown, "port": unknown, "tls": unknown, "lock": unknown, "database": unknown}},
		"port zero":                {config: attrs{"port": 0}, want: "port"},
		"port too high":            {config: attrs{"port": 65536}, want: "port"},
		"protocol":                 {config: attrs{"protocol": "ftp"}, want: "protocol"},
		"empty host":               {config: attrs{"host": ""}, want: "host"},
		"slash in database":        {config: attrs{"database": "a/b"}, want: "database: Invalid name"},
		"slash in table":           {config: attrs{"table": "a/b"}, want: "table: Invalid name"},
		"duration without unit":    {config: attrs{"dial_timeout": "10"}, want: "dial_timeout: Invalid duration"},
		"negative duration":        {config: attrs{"query_timeout": "-1s"}, want: "query_timeout: Invalid duration"},
		"negative nested duration": {config: attrs{"lock": attrs{"retry_interval": "-1s"}}, want: "lock.retry_interval: Invalid duration"},
		"no connections":           {config: attrs{"max_open_connections": 0}, want: "max_open_connections"},
		"lease too short":          {config: attrs{"lock": attrs{"stale_after": "9s"}}, want: "lock.stale_after: Invalid duration"},
		"lease too long":           {config: attrs{"lock": attrs{"stale_after": "301s"}}, want: "lock.stale_after: Invalid duration"},
		"shortest lease":           {config: attrs{"lock": attrs{"stale_after": "10s"}}},
		"longest lease":            {config: attrs{"lock": attrs{"stale_after": "5m"}}},
		"settle as timeout":        {config: attrs{"lock": attrs{"settle": "2s", "timeout": "2s"}}, want: "lock: Invalid lock settings"},
		"settle as default":        {config: attrs{"lock": attrs{"settle": "30s"}}, want: "lock: Invalid lock settings"},
		"timeout unknown":          {config: attrs{"lock": attrs{"settle": "2s", "timeout": unknown}}},
		"certificate without key":  {config: attrs{"tls": attrs{"client_cert": "x"}}, want: "tls.client_cert"},
		"key without certificate":  {config: attrs{"tls": attrs{"client_key": "x"}}, want: "tls.client_key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestProvider(t, nil)
			config := providerConfig(t, p, tc.config)
			raw, err := tfprotov6.NewDynamicValue(config.Raw.Type(), config.Raw)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := providerserver.NewProtocol6(p)().ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: &raw})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range resp.Diagnostics {
				got = append(got, attributeName(d.Attribute)+": "+d.Summary)
			}
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("got %q, want none", got)
			case tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.want)):
				t.Errorf("got %q, want one at %s", got, tc.want)
			}
		})
	}
}

// attributeName writes a path with dots.
func attributeName(at *tftypes.AttributePath) string {
	var names []string
	for _, step := range at.Steps() {
		if name, ok := step.(tftypes.AttributeName); ok {
			names = append(names, string(name))
		}
	}
	return strings.Join(names, ".")
}

func TestProvider_configure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config attrs
		env    map[string]string
		want   string // the connection or the error
	}{
		// Defaults.
		"host alone":     {config: attrs{"host": "h"}, want: `native connection to h:9000 (TLS off) as user "default"`},
		"native and TLS": {config: attrs{"host": "h", "secure": true}, want: `native connection to h:9440 (TLS on) as user "default"`},
		"http":           {config: attrs{"host": "h", "protocol": "http"}, want: `http connection to h:8123 (TLS off) as user "default"`},
		"http and TLS":   {config: attrs{"host": "h", "protocol": "http", "secure": true}, want: `http connection to h:8443 (TLS on) as user "default"`},
		"nothing":        {want: "host: Missing ClickHouse host"},

		// One source each.
		"environment": {
			env:  map[string]string{"CLICKHOUSE_HOST": "h", "CLICKHOUSE_PORT": "1", "CLICKHOUSE_PROTOCOL": "http", "CLICKHOUSE_USER": "u", "CLICKHOUSE_SECURE": "true"},
			want: `http connection to h:1 (TLS on) as user "u"`,
		},
		"meltano's variables": {
			env:  map[string]string{"MELTANO_STATE_BACKEND_CLICKHOUSE_HOST": "h", "MELTANO_STATE_BACKEND_CLICKHOUSE_PORT": "1", "MELTANO_STATE_BACKEND_CLICKHOUSE_USER": "u", "MELTANO_STATE_BACKEND_CLICKHOUSE_SECURE": "True"},
			want: `http connection to h:1 (TLS on) as user "u"`,
		},
		"meltano's URI":           {env: map[string]string{"MELTANO_STATE_BACKEND_URI": "clickhouse://u:p@h/db"}, want: `http connection to h:8123 (TLS off) as user "u"`},
		"meltano_uri":             {config: attrs{"meltano_uri": "clickhouse://u:p@h:1/db"}, want: `http connection to h:1 (TLS off) as user "u"`},
		"empty variable is unset": {env: map[string]string{"CLICKHOUSE_HOST": "", "MELTANO_STATE_BACKEND_CLICKHOUSE_HOST": "h"}, want: `http connection to h:8123 (TLS off) as user "default"`},

		// An attribute beats the environment.
		"attributes over environment": {
			config: attrs{"host": "a", "port": 2, "protocol": "native", "username": "v", "secure": false},
			env:    map[string]string{"CLICKHOUSE_HOST": "h", "CLICKHOUSE_PORT": "1", "CLICKHOUSE_PROTOCOL": "http", "CLICKHOUSE_USER": "u", "CLICKHOUSE_SECURE": "true"},
			want:   `native connection to a:2 (TLS off) as user "v"`,
		},
		"attributes over meltano_uri": {config: attrs{"host": "a", "username": "v", "meltano_uri": "clickhouse://u:p@h:1/db"}, want: `http connection to a:1 (TLS off) as user "v"`},
		"protocol over meltano_uri":   {config: attrs{"protocol": "native", "port": 9000, "meltano_uri": "clickhouse://u:p@h/db"}, want: `native connection to h:9000 (TLS off) as user "u"`},
		"meltano_uri over environment, as one address": {
			config: attrs{"meltano_uri": "clickhouse://h/db"},
			env:    map[string]string{"CLICKHOUSE_HOST": "x", "CLICKHOUSE_PORT": "1", "CLICKHOUSE_PROTOCOL": "native", "CLICKHOUSE_SECURE": "true", "CLICKHOUSE_USER": "u"},
			want:   `http connection to h:8123 (TLS off) as user "u"`,
		},
		"environment fills in": {config: attrs{"host": "a"}, env: map[string]string{"CLICKHOUSE_PORT": "1", "CLICKHOUSE_USER": "u"}, want: `native connection to a:1 (TLS off) as user "u"`},

		// Meltano's variables are of one server.
		"environment over meltano's": {
			env:  map[string]string{"CLICKHOUSE_HOST": "h", "MELTANO_STATE_BACKEND_CLICKHOUSE_HOST": "x", "MELTANO_STATE_BACKEND_CLICKHOUSE_PORT": "1", "MELTANO_STATE_BACKEND_CLICKHOUSE_SECURE": "true", "MELTANO_STATE_BACKEND_CLICKHOUSE_USER": "u"},
			want: `native connection to h:9000 (TLS off) as user "u"`,
		},
		"environment over meltano's URI": {
			env:  map[string]string{"CLICKHOUSE_HOST": "h", "MELTANO_STATE_BACKEND_URI": "clickhouse://u:p@x:1/db"},
			want: `native connection to h:9000 (TLS off) as user "default"`,
		},
		"meltano's variables over its URI": {
			env:  map[string]string{"MELTANO_STATE_BACKEND_CLICKHOUSE_HOST": "h", "MELTANO_STATE_BACKEND_URI": "clickhouse://u:p@x:1/db"},
			want: `http connection to h:1 (TLS off) as user "u"`,
		},

		// What is wrong is named where it was said, without the secret.
		"port is no number":      {config: attrs{"host": "h"}, env: map[string]string{"CLICKHOUSE_PORT": "abc"}, want: `port: Invalid environment variable CLICKHOUSE_PORT: Expected a number from 1 to 65535, got: "abc".`},
		"port zero":              {env: map[string]string{"MELTANO_STATE_BACKEND_CLICKHOUSE_HOST": "h", "MELTANO_STATE_BACKEND_CLICKHOUSE_PORT": "0"}, want: `port: Invalid environment variable MELTANO_STATE_BACKEND_CLICKHOUSE_PORT`},
		"unused port":            {config: attrs{"host": "h", "port": 1}, env: map[string]string{"CLICKHOUSE_PORT": "abc"}, want: `native connection to h:1 (TLS off) as user "default"`},
		"protocol is none":       {config: attrs{"host": "h"}, env: map[string]string{"CLICKHOUSE_PROTOCOL": "ftp"}, want: `protocol: Invalid environment variable CLICKHOUSE_PROTOCOL: Expected "native" or "http", got: "ftp".`},
		"secure is no boolean":   {config: attrs{"host": "h"}, env: map[string]string{"CLICKHOUSE_SECURE": "maybe"}, want: `secure: Invalid environment variable CLICKHOUSE_SECURE: Expected true or false, got: "maybe".`},
		"URI of another scheme":  {config: attrs{"meltano_uri": "https://u:hunter2@h"}, want: `meltano_uri: Invalid meltano_uri: The URI does not begin with clickhouse://`},
		"variable with bad port": {env: map[string]string{"MELTANO_STATE_BACKEND_URI": "clickhouse://u:hunter2@h:x/"}, want: `meltano_uri: Invalid environment variable MELTANO_STATE_BACKEND_URI: The URI's port`},
		"slash in schema":        {config: attrs{"host": "h"}, env: map[string]string{"MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA": "a/b"}, want: `database: Invalid environment variable MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA`},
		"certificate":            {config: attrs{"host": "h", "secure": true, "tls": attrs{"ca_cert": "hunter2"}}, want: `tls.ca_cert: Invalid tls.ca_cert`},
		"key":                    {config: attrs{"host": "h", "secure": true, "tls": attrs{"client_cert": "hunter2", "client_key": "hunter2"}}, want: `tls.client_cert: Invalid tls.client_cert`},
		"tls without secure":     {config: attrs{"host": "h", "tls": attrs{"server_name": "x"}}, want: `tls: Invalid tls`},
		"path without HTTP":      {config: attrs{"host": "h", "http_path": "/ch"}, want: `http_path: Invalid http_path`},
		"URI as host":            {config: attrs{"host": "clickhouse://u:hunter2@h"}, want: `host: Invalid host`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestProvider(t, tc.env)
			var resp provider.ConfigureResponse
			p.Configure(t.Context(), provider.ConfigureRequest{Config: providerConfig(t, p, tc.config)}, &resp)
			got := ""
			for _, d := range resp.Diagnostics {
				got += said(d)
			}
			if i, ok := resp.ResourceData.(*instance); ok {
				got += i.store.String()
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is in %q", got)
			}
		})
	}
}

func TestProvider_defaults(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA": "schema", "MELTANO_STATE_BACKEND_CLICKHOUSE_TABLE": "bookmarks"}
	for name, tc := range map[string]struct {
		config attrs
		env    map[string]string
		want   string
	}{
		"none":                              {config: attrs{"host": "h"}, want: `"meltano"/"state"`},
		"environment":                       {config: attrs{"host": "h"}, env: environment, want: `"schema"/"bookmarks"`},
		"attributes":                        {config: attrs{"host": "h", "database": "d", "table": "t"}, env: environment, want: `"d"/"t"`},
		"the URI's database is another one": {config: attrs{"meltano_uri": "clickhouse://h/db"}, want: `"meltano"/"state"`},
		"unknown":                           {config: attrs{"host": "h", "database": unknown}, want: `<unknown>/"state"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestProvider(t, tc.env)
			var resp provider.ConfigureResponse
			p.Configure(t.Context(), provider.ConfigureRequest{Config: providerConfig(t, p, tc.config)}, &resp)
			i, ok := resp.ResourceData.(*instance)
			if !ok {
				t.Fatal(resp.Diagnostics)
			}
			if got := i.database.String() + "/" + i.table.String(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if i.store == nil {
				t.Errorf("no store, though the connection is known")
			}
		})
	}
}

func TestProvider_unknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config attrs
		want   []string
	}{
		"host":       {config: attrs{"host": unknown}, want: []string{"host"}},
		"nested":     {config: attrs{"host": "h", "tls": attrs{"ca_cert": unknown}}, want: []string{"tls.ca_cert"}},
		"whole":      {config: attrs{"host": "h", "lock": unknown}, want: []string{"lock"}},
		"with names": {config: attrs{"password": unknown, "table": unknown}, want: []string{"password"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestProvider(t, nil)
			var resp provider.ConfigureResponse
			p.Configure(t.Context(), provider.ConfigureRequest{Config: providerConfig(t, p, tc.config)}, &resp)
			i, ok := resp.ResourceData.(*instance)
			if !ok {
				t.Fatal(resp.Diagnostics)
			}
			var diags diag.Diagnostics
			if store := i.open(&diags); store != nil || len(diags) != 1 {
				t.Fatalf("got store %v and %v, want one error", store, diags)
			}
			for _, name := range tc.want {
				if !strings.Contains(said(diags[0]), "The provider's "+name+" will be known only after apply") {
					t.Errorf("got %q, want %s named", said(diags[0]), name)
				}
			}
		})
	}
}
