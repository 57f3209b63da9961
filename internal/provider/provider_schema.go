package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// What the documentation promises where the configuration says nothing.
const (
	defaultDatabase    = "meltano"
	defaultTable       = "state"
	defaultUsername    = "default"
	defaultLockTimeout = 30 * time.Second
	defaultLockSettle  = time.Second
	// defaultLockStaleAfter is also the longest that may be set.
	defaultLockStaleAfter = 300 * time.Second
)

// Protocols, as the protocol attribute names them.
const (
	protocolNative = "native"
	protocolHTTP   = "http"
)

// Schema describes the provider's configuration.
func (p *Provider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Manages the state of Meltano pipelines (their bookmarks) that is kept in ClickHouse: the table, and the entries in it. " +
			"Every write is made under the advisory lock that Meltano's ClickHouse state backend uses.\n\n" +
			"A value is taken from the attribute; else, for the connection, from `meltano_uri`; else from `CLICKHOUSE_HOST`, `_PORT`, `_PROTOCOL`, `_USER`, `_PASSWORD` and `_SECURE`; " +
			"else from Meltano's own `MELTANO_STATE_BACKEND_CLICKHOUSE_HOST`, `_PORT`, `_USER`, `_PASSWORD`, `_SECURE`, `_SCHEMA` and `_TABLE`; else from `MELTANO_STATE_BACKEND_URI`. " +
			"An empty variable counts as unset. Meltano's variables speak of one server: where something before them names the host, their host, port, TLS and URI do not count.",
		Attributes: map[string]schema.Attribute{
			"host": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Host name or IP address of the ClickHouse server, without port. There is no default. Environment: `CLICKHOUSE_HOST`.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"port": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "Port, 1 to 65535. Default: 9000 (`native`), 9440 (`native` with TLS), 8123 (`http`) or 8443 (`http` with TLS). Environment: `CLICKHOUSE_PORT`.",
				Validators:          []validator.Int64{int64validator.Between(1, 65535)},
			},
			"protocol": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "`native` (default) or `http`. With a `meltano_uri` the default is `http`, which is what Meltano speaks. Environment: `CLICKHOUSE_PROTOCOL`.",
				Validators:          []validator.String{stringvalidator.OneOf(protocolNative, protocolHTTP)},
			},
			"username": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "User. Default: `default`. Environment: `CLICKHOUSE_USER`.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"password": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "The user's password. Default: empty. It never appears in logs and errors. Environment: `CLICKHOUSE_PASSWORD`.",
			},
			"secure": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether to use TLS. Default: `false`. Environment: `CLICKHOUSE_SECURE` (`true`, `false`, `1`, `0`).",
			},
			"tls": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "How to verify the server, and how to be verified by it. Needs `secure = true`.",
				Attributes: map[string]schema.Attribute{
					"ca_cert": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "PEM certificates of the authorities to trust, in place of the system's.",
					},
					"client_cert": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "PEM certificate that the server can ask for. Needs `client_key`.",
						Validators:          []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("client_key"))},
					},
					"client_key": schema.StringAttribute{
						Optional:            true,
						Sensitive:           true,
						MarkdownDescription: "PEM private key of `client_cert`.",
						Validators:          []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("client_cert"))},
					},
					"server_name": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Name that the server's certificate must be for. Default: `host`.",
					},
					"insecure_skip_verify": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Whether to accept any certificate. Default: `false`. With `true`, anyone between here and the server can read the password and change the state.",
					},
				},
			},
			"http_path": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Path of the HTTP interface, for a server behind a gateway, such as `/ch/`. Only for `protocol = \"http\"`. Default: `/`.",
			},
			"dial_timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long opening a connection may take, such as `\"30s\"`. Default: `10s`. A ClickHouse Cloud service that sleeps is waited for so long.",
				Validators:          []validator.String{durationValidator{min: time.Second}},
			},
			"query_timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long one statement may take, such as `\"2m\"`. Default: `5m`.",
				Validators:          []validator.String{durationValidator{min: time.Second}},
			},
			"max_open_connections": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "How many connections to open at most. Default: 10, which is how many operations Terraform runs at a time.",
				Validators:          []validator.Int64{int64validator.AtLeast(1)},
			},
			"quorum": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "For replicated tables that are reached through several hosts: whether every write waits for a majority of the replicas (`insert_quorum = auto`), and every read is refused by a replica that lags behind " +
					"(`select_sequential_consistency`). Default: `false`. It makes the provider's own writes and locks agree on all replicas; for Meltano's, see the guide [How the table works](guides/table). Not verified on a cluster.",
			},
			"database": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Database of resources that name none. Default: `meltano`. A resource that exists already stays where it is when this changes. " +
					"Environment: `MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA`.",
				Validators: []validator.String{nameValidator{}},
			},
			"table": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "State table of resources that name none. Default: `state`. A resource that exists already stays where it is when this changes. " +
					"Environment: `MELTANO_STATE_BACKEND_CLICKHOUSE_TABLE`.",
				Validators: []validator.String{nameValidator{}},
			},
			"meltano_uri": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "Meltano's `state_backend.uri`: `clickhouse://user:password@host:8123/database`, which means HTTP. Attributes beat what it says, and it beats the environment: " +
					"its host, port (8123 if it names none) and TLS are taken together. Its database is the one that Meltano connects to, not the one that holds the state: see `database`. Environment: `MELTANO_STATE_BACKEND_URI`.",
			},
			"lock": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "How to take the lock that guards each write. Plans, refreshes and data sources take none.",
				Attributes: map[string]schema.Attribute{
					"timeout": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "How long to wait for a lock that another holds, such as a running pipeline. Default: `30s`. The `timeouts` of a resource bound the whole operation, this wait included.",
						Validators:          []validator.String{durationValidator{min: time.Second}},
					},
					"stale_after": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "Lease of our own locks, `10s` to `300s`: one that could not be renewed for so long counts as lost, and nothing is written under it any more. " +
							"Default: `300s`. Whatever is set here, a lock that a crash left behind is taken over after 300 s, as Meltano has it.",
						Validators: []validator.String{durationValidator{min: 10 * time.Second, max: 300 * time.Second}},
					},
					"settle": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "How long to wait, on a lock table that Meltano made or a replicated one, before it is decided who holds: there, a claim may be hidden for a while. Each write takes so much longer. " +
							"Default: `1s`, as Meltano has it. Must be shorter than `timeout`, and at most a fifth of `stale_after`. Raise it above the lag of replicas.",
						Validators: []validator.String{durationValidator{min: 10 * time.Millisecond}},
					},
					"retry_interval": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Pause between two tries while another holds the lock; up to a quarter more or less, at random. Default: `1s`.",
						Validators:          []validator.String{durationValidator{min: 10 * time.Millisecond}},
					},
				},
			},
		},
	}
}
