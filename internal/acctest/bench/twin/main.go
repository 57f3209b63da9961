// Command twin is a provider that does nothing: its clickhousestate_entry has the schema of the real one, and no server
// behind it. What Terraform, its state and the plugin framework take for such a resource is the floor that the real one is
// measured against.
package main

import (
	"context"
	"log"
	"math/big"
	"os"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	ours "github.com/clickhousestate/terraform-provider-clickhousestate/internal/provider"
)

func main() {
	// As the real one does, where nobody asks for a log.
	for _, key := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_CLICKHOUSESTATE"} {
		if err := os.Setenv(key, "OFF"); err != nil {
			log.Fatal(err)
		}
	}
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(512 << 20)
	err := providerserver.Serve(context.Background(), func() provider.Provider { return twin{} }, providerserver.ServeOpts{
		Address: "registry.terraform.io/clickhousestate/clickhousestate", ProtocolVersion: 6,
	})
	if err != nil {
		log.Fatal(err)
	}
}

type twin struct{}

func (twin) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "clickhousestate"
}

func (twin) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{}
}

func (twin) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (twin) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &entry{real: ours.NewEntryResource()} }}
}

func (twin) DataSources(context.Context) []func() datasource.DataSource { return nil }

// entry has the real one's name and schema.
type entry struct{ real resource.Resource }

func (e *entry) Metadata(ctx context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	e.real.Metadata(ctx, req, resp)
}

func (e *entry) Schema(ctx context.Context, req resource.SchemaRequest, resp *resource.SchemaResponse) {
	e.real.Schema(ctx, req, resp)
}

// Create keeps what is planned, and makes up the rest as long as the real one's would be, since Terraform writes the whole of
// its state for each resource: on the raw value, which is the cheapest there is.
func (e *entry) Create(_ context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var values map[string]tftypes.Value
	if err := req.Plan.Raw.As(&values); err != nil {
		resp.Diagnostics.AddError("Unable to read the plan", err.Error())
		return
	}
	var database, table, id, payload string
	for part, into := range map[string]*string{"database": &database, "table": &table, "state_id": &id, "completed_state": &payload} {
		if err := values[part].As(into); err != nil {
			resp.Diagnostics.AddError("Unable to read "+part, err.Error())
			return
		}
	}
	for name, made := range map[string]any{
		"id":           database + "/" + table + "/" + id,
		"merged_state": strings.ReplaceAll(payload, " ", ""),
		"updated_at":   "2026-01-01T00:00:00.000Z",
		"version":      big.NewFloat(1_767_225_600_000_000),
	} {
		values[name] = tftypes.NewValue(values[name].Type(), made)
	}
	resp.State.Raw = tftypes.NewValue(req.Plan.Raw.Type(), values)
}

// Read leaves the state as it is.
func (e *entry) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update takes over the plan.
func (e *entry) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Delete has nothing to delete.
func (e *entry) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
