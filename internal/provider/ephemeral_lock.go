package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*lockEphemeralResource)(nil)
	_ ephemeral.EphemeralResourceWithRenew     = (*lockEphemeralResource)(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*lockEphemeralResource)(nil)
)

// NewLockEphemeralResource returns the ephemeral resource clickhousestate_lock.
func NewLockEphemeralResource() ephemeral.EphemeralResource { return &lockEphemeralResource{} }

// lockEphemeralResource is the lock of some pipelines, for as long as Terraform works on what depends on it.
type lockEphemeralResource struct {
	configured
}

type lockEphemeralResourceModel struct {
	StateIDs types.Set    `tfsdk:"state_ids"`
	Database types.String `tfsdk:"database"`
	Table    types.String `tfsdk:"table"`
	Timeout  types.String `tfsdk:"timeout"`
	LockID   types.String `tfsdk:"lock_id"`
	Holder   types.String `tfsdk:"holder"`
}

// Metadata names the ephemeral resource.
func (r *lockEphemeralResource) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = typeName + "_lock"
}

// Schema describes a lock.
func (r *lockEphemeralResource) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The lock of one or more pipelines, held while Terraform works on what depends on it: a maintenance window. " +
			"Meltano waits for the lock for 30 s and then fails the run. Resources that are to happen inside name it in `depends_on`; entries of the same provider configuration do not wait for it.\n\n" +
			"It renews itself, however long it is held. If it is lost all the same, for example because somebody broke it, every later write under it fails and writes nothing. " +
			"It is released when everything that depends on it is done, and also after an error or Ctrl-C; only after a crash it stays until it is stale.\n\n" +
			"~> Terraform opens ephemeral resources in every plan and again in every apply, even if there is nothing to change: **each plan takes the lock for as long as it runs**, and waits for it. " +
			"`terraform destroy` takes it in its plan, but not while it destroys. So the user needs the rights of an apply on the lock table for a plan as well.\n\n" +
			"Needs Terraform 1.11 or OpenTofu 1.11, or newer. See the guide [Locking](../guides/locking).",
		Attributes: map[string]schema.Attribute{
			"state_ids": schema.SetAttribute{
				ElementType:         types.StringType,
				Required:            true,
				MarkdownDescription: "State ids of the pipelines to lock: all of them or none. A state id may be in one lock only.",
				Validators: []validator.Set{
					setvalidator.SizeAtLeast(1),
					setvalidator.NoNullValues(),
					setvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)),
				},
			},

			"database": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: databaseDescription,
				Validators:          []validator.String{nameValidator{}},
			},
			"table": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: tableDescription,
				Validators:          []validator.String{nameValidator{}},
			},
			"timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long to wait for the lock while another holds it, such as `\"10m\"` for pipelines that run for long. Default: `lock.timeout` of the provider.",
				Validators:          []validator.String{durationValidator{min: time.Second}},
			},

			"lock_id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Identifies this lock in the lock table. Each one is new.",
			},
			"holder": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Who others see as its holder: user, host, process and program.",
			},
		},
	}
}

// Configure takes over the configured provider.
func (r *lockEphemeralResource) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	r.take(req.ProviderData, &resp.Diagnostics)
}

// Open acquires the lock. From then on it renews itself, so nothing depends on how punctual Terraform is.
func (r *lockEphemeralResource) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var lock lockEphemeralResourceModel
	var ids []string
	resp.Diagnostics.Append(req.Config.Get(ctx, &lock)...)
	resp.Diagnostics.Append(lock.StateIDs.ElementsAs(ctx, &ids, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	store := r.openAt(&lock.Database, &lock.Table, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	database, table := lock.Database.ValueString(), lock.Table.ValueString()
	what := onLock("acquire", ids, database+"/"+table, store)
	hold, err := store.Hold(ctx, database, table, ids, durationOf(lock.Timeout, 0))
	if err != nil {
		addError(&resp.Diagnostics, what, err)
		return
	}
	opened := heldLock{Hold: hold, object: what.object, server: what.server}
	r.held.add(opened)
	lock.LockID, lock.Holder = types.StringValue(hold.LockID()), types.StringValue(hold.Holder())
	resp.Diagnostics.Append(resp.Result.Set(ctx, lock)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, lockIDKey, lockIDValue(hold.LockID()))...)
	resp.RenewAt = opened.renewAt()
}

// Renew reports a lock that is lost. The lock renews itself: Terraform 1.11 goes on with the apply after this error, so
// what keeps later writes from happening is that the lock remembers.
func (r *lockEphemeralResource) Renew(ctx context.Context, req ephemeral.RenewRequest, resp *ephemeral.RenewResponse) {
	lock, found := r.lookup(ctx, "renew", req.Private, &resp.Diagnostics)
	if !found {
		return
	}
	resp.RenewAt = lock.renewAt()
	err := lock.Renew(ctx)
	switch {
	case errors.As(err, new(*statestore.LostError)):
		addError(&resp.Diagnostics, lock.attempt("renew"), err)
	case err != nil:
		// Another's claim is in sight for a moment, or there is no connection: it goes on trying by itself.
		tflog.Warn(ctx, "lock not renewed yet", map[string]any{"lock_id": lock.LockID(), "error": err.Error()})
	}
}

// Close releases the lock.
func (r *lockEphemeralResource) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	lock, found := r.lookup(ctx, "release", req.Private, &resp.Diagnostics)
	if !found {
		return
	}
	r.held.remove(lock)
	err := lock.Release(ctx)
	var unreleased *statestore.ReleaseError
	switch {
	case errors.As(err, new(*statestore.LostError)):
		addError(&resp.Diagnostics, lock.attempt("release"), err)
	case errors.As(err, &unreleased):
		resp.Diagnostics.AddWarning(fmt.Sprintf("The lock %s may not be released", unreleased.LockID), fmt.Sprintf(
			"Removing %s was not confirmed, so pipelines may have to wait until it expires at %s.\n\n%s",
			lock.object, unreleased.Expires.UTC().Format(time.RFC3339), sentence(unreleased)))
	case err != nil:
		addError(&resp.Diagnostics, lock.attempt("release"), err)
	}
}

// lockIDKey is where the private data keep the lock_id, by which Renew and Close find the lock.
const lockIDKey = "lock_id"

// lockIDValue makes private data of a lock_id: they have to be JSON.
func lockIDValue(lockID string) []byte { return fmt.Appendf(nil, "%q", lockID) }

// privateData are what Open leaves for Renew and Close.
type privateData interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// lookup finds the lock that Open has acquired. It reports an error if there is none.
func (r *lockEphemeralResource) lookup(ctx context.Context, verb string, private privateData, diags *diag.Diagnostics) (heldLock, bool) {
	value, read := private.GetKey(ctx, lockIDKey)
	diags.Append(read...)
	var lockID string
	if err := json.Unmarshal(value, &lockID); err != nil {
		diags.AddError(fmt.Sprintf("Unable to %s lock", verb), "Its private data hold no lock_id. This is a bug in the provider; please report it.")
		return heldLock{}, false
	}
	lock, found := r.held.find(lockID)
	if !found {
		diags.AddError(fmt.Sprintf("Unable to %s lock", verb), fmt.Sprintf(
			"This process of the provider does not hold lock %s. If another did, which has ended, the lock is gone or will be stale soon.", lockID))
	}
	return lock, found
}

// A heldLock is an open lock, and what messages say about it.
type heldLock struct {
	*statestore.Hold
	object, server string
}

func (l heldLock) attempt(verb string) attempt {
	return attempt{verb: verb, kind: "lock", object: l.object, server: l.server}
}

// renewAt is when Terraform is to call Renew: at most a minute from now.
func (l heldLock) renewAt() time.Time { return time.Now().Add(l.RenewEvery()) }

// heldLocks are locks by their lock_id. The zero value is ready.
type heldLocks struct {
	mu  sync.Mutex
	all map[string]heldLock
}

func (l *heldLocks) add(lock heldLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]heldLock{}
	}
	l.all[lock.LockID()] = lock
}

func (l *heldLocks) find(lockID string) (heldLock, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock, found := l.all[lockID]
	return lock, found
}

func (l *heldLocks) remove(lock heldLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, lock.LockID())
}
