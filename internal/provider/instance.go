package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// An instance is one configured provider: what Configure hands to resources.
type instance struct {
	// database and table are the defaults of resources that name none. Unknown as long as the configuration's are.
	database, table types.String
	// unknown are the attributes of the connection whose values are not known yet. While there are any, store is nil.
	unknown []string
	store   *statestore.Store
	// held are the locks that ephemeral resources have opened and not closed yet.
	held heldLocks
}

// open returns the store. While the connection is not known there is none: then it reports an error and returns nil.
func (i *instance) open(diags *diag.Diagnostics) *statestore.Store {
	if i.store == nil {
		diags.AddError("Unable to connect to ClickHouse yet", fmt.Sprintf(
			"The provider's %s will be known only after apply, so what is stored cannot be read now.\n\n"+
				"Apply what the value comes from first (for example with -target), or plan with -refresh=false.",
			strings.Join(i.unknown, ", ")))
	}
	return i.store
}

// databaseDescription and tableDescription are of the attributes that openAt fills in. The framework gives each kind of
// schema its own types, so the attributes themselves stand in each.
const (
	databaseDescription = "Database of the state table. Default: the provider's."
	tableDescription    = "Name of the state table. Default: the provider's."
)

// openAt returns the store, and fills in the names of database and table that were left out. While one of them is not
// known, it reports an error and returns nil.
func (i *instance) openAt(database, table *types.String, diags *diag.Diagnostics) *statestore.Store {
	*database, *table = orDefault(*database, i.database), orDefault(*table, i.table)
	if database.IsUnknown() || table.IsUnknown() {
		diags.AddError("Unable to find the state table yet", "The provider's database or table will be known only after apply.\n\n"+
			"Apply what the value comes from first (for example with -target), or name both here.")
		return nil
	}
	return i.open(diags)
}

// configured is embedded by everything that works on the store.
type configured struct {
	*instance
}

// Configure is that of resources. Other kinds have their own, since the framework gives each kind its own types.
func (c *configured) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	c.take(req.ProviderData, &resp.Diagnostics)
}

// take takes over what the provider's Configure made. Terraform also configures before that, for validation.
func (c *configured) take(providerData any, diags *diag.Diagnostics) {
	if providerData == nil {
		return
	}
	i, ok := providerData.(*instance)
	if !ok {
		diags.AddError("Unexpected provider data",
			fmt.Sprintf("Expected %T, got %T. This is a bug in the provider; please report it.", i, providerData))
		return
	}
	c.instance = i
}
