// Package provider is the Terraform provider: schemas, plans and diagnostics around package statestore.
package provider

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// typeName begins the names of all resources.
const typeName = "clickhousestate"

var (
	_ provider.Provider                       = (*Provider)(nil)
	_ provider.ProviderWithActions            = (*Provider)(nil)
	_ provider.ProviderWithEphemeralResources = (*Provider)(nil)
	_ provider.ProviderWithFunctions          = (*Provider)(nil)
	_ provider.ProviderWithListResources      = (*Provider)(nil)
	_ provider.ProviderWithValidateConfig     = (*Provider)(nil)
)

// Provider is the Terraform provider. Terraform may configure it more than once.
type Provider struct {
	version string
	getenv  func(string) string

	mu     sync.Mutex
	stores []opened
}

// An opened store keeps the context that it was configured in, for what it logs at its end.
type opened struct {
	store *statestore.Store
	ctx   context.Context //nolint:containedctx // the values alone: the request has ended
}

// New returns a provider of the given version.
func New(version string) *Provider {
	return &Provider{version: version, getenv: os.Getenv}
}

// Close releases what is still held on the server and closes the connections, until the context ends.
func (p *Provider) Close(done context.Context) {
	p.mu.Lock()
	stores := p.stores
	p.stores = nil
	p.mu.Unlock()

	for _, one := range stores { // one, but for tests
		ctx, cancel := context.WithCancel(one.ctx)
		stop := context.AfterFunc(done, cancel)
		_ = one.store.Close(ctx) // nobody is left who could do anything about an error
		stop()
		cancel()
	}
}

type providerModel struct {
	Host               types.String `tfsdk:"host"`
	Port               types.Int64  `tfsdk:"port"`
	Protocol           types.String `tfsdk:"protocol"`
	Username           types.String `tfsdk:"username"`
	Password           types.String `tfsdk:"password"`
	Secure             types.Bool   `tfsdk:"secure"`
	TLS                *tlsModel    `tfsdk:"tls"`
	HTTPPath           types.String `tfsdk:"http_path"`
	DialTimeout        types.String `tfsdk:"dial_timeout"`
	QueryTimeout       types.String `tfsdk:"query_timeout"`
	MaxOpenConnections types.Int64  `tfsdk:"max_open_connections"`
	Quorum             types.Bool   `tfsdk:"quorum"`
	Database           types.String `tfsdk:"database"`
	Table              types.String `tfsdk:"table"`
	MeltanoURI         types.String `tfsdk:"meltano_uri"`
	Lock               *lockModel   `tfsdk:"lock"`
}

type tlsModel struct {
	CACert             types.String `tfsdk:"ca_cert"`
	ClientCert         types.String `tfsdk:"client_cert"`
	ClientKey          types.String `tfsdk:"client_key"`
	ServerName         types.String `tfsdk:"server_name"`
	InsecureSkipVerify types.Bool   `tfsdk:"insecure_skip_verify"`
}

type lockModel struct {
	Timeout       types.String `tfsdk:"timeout"`
	StaleAfter    types.String `tfsdk:"stale_after"`
	Settle        types.String `tfsdk:"settle"`
	RetryInterval types.String `tfsdk:"retry_interval"`
}

// Metadata names the provider.
func (p *Provider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = typeName
	resp.Version = p.version
}

// Resources lists the resources.
func (p *Provider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{NewTableResource, NewEntryResource, NewEntriesResource}
}

// DataSources lists the data sources.
func (p *Provider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{NewEntryDataSource, NewEntriesDataSource, NewLocksDataSource, NewTableDataSource}
}

// EphemeralResources lists the ephemeral resources.
func (p *Provider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{NewLockEphemeralResource}
}

// ListResources lists the resources that Terraform can query.
func (p *Provider) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{NewEntryListResource}
}

// Functions lists the functions. They are pure, and work without a configured provider.
func (p *Provider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{NewStateIDFunction, NewParseStateIDFunction, NewMergeStateFunction, NewBookmarksFunction}
}

// Actions lists the actions.
func (p *Provider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{NewBreakLockAction, NewClearAction, NewOptimizeAction}
}

// ValidateConfig checks what one attribute alone cannot tell.
func (p *Provider) ValidateConfig(ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	lock := path.Root("lock")
	timeout := durationAt(ctx, req.Config, lock.AtName("timeout"), defaultLockTimeout)
	settle := durationAt(ctx, req.Config, lock.AtName("settle"), defaultLockSettle)
	if stale := durationAt(ctx, req.Config, lock.AtName("stale_after"), defaultLockStaleAfter); settle > stale/5 {
		resp.Diagnostics.AddAttributeError(lock, "Invalid lock settings",
			"settle must be at most a fifth of stale_after: else a lock would have to be renewed before it has settled.")
	}
	if settle >= timeout {
		resp.Diagnostics.AddAttributeError(lock, "Invalid lock settings",
			"settle must be shorter than timeout: a lock that has to settle first could never be acquired in time.")
	}
}

// Configure resolves attributes, environment and defaults. It opens no connection: the first use does.
func (p *Provider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	i := p.configure(ctx, req.Config, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.ResourceData, resp.DataSourceData = i, i
	resp.EphemeralResourceData, resp.ActionData, resp.ListResourceData = i, i, i
}

// configure returns nothing if it reports an error.
func (p *Provider) configure(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) *instance {
	i := &instance{}
	env := environment{getenv: p.getenv, diags: diags}
	diags.Append(config.GetAttribute(ctx, path.Root("database"), &i.database)...)
	diags.Append(config.GetAttribute(ctx, path.Root("table"), &i.table)...)
	i.database = env.name("database", i.database, envMeltanoSchema, defaultDatabase)
	i.table = env.name("table", i.table, envMeltanoTable, defaultTable)

	// An unknown value means: no connection until it is known, not even to a guess.
	if i.unknown = unknownAttributes(config.Raw, "database", "table"); len(i.unknown) > 0 {
		return i
	}
	var model providerModel
	diags.Append(config.Get(ctx, &model)...)
	if diags.HasError() {
		return nil
	}
	connection := env.connection(env.resolve(model))
	if diags.HasError() {
		return nil
	}
	i.store = p.openStore(ctx, model, connection, diags)
	return i
}

// openStore opens the store, which checks the settings and connects to nothing.
func (p *Provider) openStore(ctx context.Context, model providerModel, connection statestore.Connection, diags *diag.Diagnostics) *statestore.Store {
	connection.HTTPPath = model.HTTPPath.ValueString()
	connection.DialTimeout = durationOf(model.DialTimeout, 0)
	connection.QueryTimeout = durationOf(model.QueryTimeout, 0)
	connection.MaxOpenConns = int(model.MaxOpenConnections.ValueInt64())
	connection.Quorum = model.Quorum.ValueBool()
	connection.Version = p.version
	if tls := model.TLS; tls != nil {
		connection.TLS = statestore.TLS{
			CACert:             tls.CACert.ValueString(),
			ClientCert:         tls.ClientCert.ValueString(),
			ClientKey:          tls.ClientKey.ValueString(),
			ServerName:         tls.ServerName.ValueString(),
			InsecureSkipVerify: tls.InsecureSkipVerify.ValueBool(),
		}
	}
	var lock statestore.LockOptions
	if model.Lock != nil {
		lock = statestore.LockOptions{
			Timeout:       durationOf(model.Lock.Timeout, 0),
			StaleAfter:    durationOf(model.Lock.StaleAfter, 0),
			Settle:        durationOf(model.Lock.Settle, 0),
			RetryInterval: durationOf(model.Lock.RetryInterval, 0),
		}
	}
	store, err := statestore.Open(statestore.Config{
		Connection: connection,
		Lock:       lock,
		Logger:     newLogger(connection.Password, connection.TLS.ClientKey, model.MeltanoURI.ValueString()),
	})
	if err != nil {
		addConfigError(diags, err)
		return nil
	}
	p.mu.Lock()
	p.stores = append(p.stores, opened{store, context.WithoutCancel(ctx)})
	p.mu.Unlock()
	return store
}

// unknownAttributes lists the attributes of a configuration whose values are not known yet, but for those excepted.
func unknownAttributes(config tftypes.Value, except ...string) []string {
	var unknown []string
	_ = tftypes.Walk(config, func(at *tftypes.AttributePath, value tftypes.Value) (bool, error) { // the callback returns no error
		if value.IsKnown() {
			return true, nil
		}
		var name string
		for _, step := range at.Steps() {
			if attribute, ok := step.(tftypes.AttributeName); ok {
				name += "." + string(attribute)
			}
		}
		name = name[min(1, len(name)):]
		if !slices.Contains(except, name) {
			unknown = append(unknown, name)
		}
		return false, nil
	})
	return unknown
}

// addConfigError points at the attribute that the core refused: its errors begin with the name.
func addConfigError(diags *diag.Diagnostics, err error) {
	name, _, _ := strings.Cut(err.Error(), ":")
	name, _, _ = strings.Cut(name, ",") // a pair of attributes
	at := path.Empty()
	for i, step := range strings.Split(name, ".") {
		if i == 0 {
			at = path.Root(step)
		} else {
			at = at.AtName(step)
		}
	}
	diags.AddAttributeError(at, "Invalid "+name, sentence(err))
}
