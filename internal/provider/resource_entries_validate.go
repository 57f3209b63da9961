package provider

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

// ValidateConfig refuses what Meltano could not read, and warns of state in which it finds no bookmark.
func (r *entriesResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config entriesResourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	all := declarations{}
	for id, value := range config.Entries.Elements() {
		if value.IsUnknown() || value.IsNull() {
			if value.IsNull() {
				resp.Diagnostics.AddAttributeError(path.Root("entries").AtMapKey(id), "Invalid state entry", "An entry must not be null. "+entryShape)
			}
			continue
		}
		entry, err := bookmark.ParseEntry(textOf(value))
		if err != nil {
			addInvalidEntry(&resp.Diagnostics, path.Root("entries").AtMapKey(id), err)
		}
		all[id] = entry
	}
	at := path.Root("entries")
	if !config.Export.IsNull() && !config.Export.IsUnknown() {
		var err error
		at = path.Root("export")
		if all, err = bookmark.ParseExport(config.Export.ValueString()); err != nil {
			addInvalidEntry(&resp.Diagnostics, at, err)
		}
	}
	var bare []string
	for _, id := range sortedIDs(all) {
		if id == "" || !utf8.ValidString(id) {
			resp.Diagnostics.AddAttributeError(at, "Invalid state id", fmt.Sprintf("A state id must be text that is not empty, got: %q.", id))
		}
		if lacksState(all[id].Completed) || lacksState(all[id].Partial) {
			bare = append(bare, id)
		}
	}
	if len(bare) > 0 {
		resp.Diagnostics.AddAttributeWarning(at, several(bare, "has no singer_state", "have no singer_state"),
			"Meltano reads bookmarks from the key singer_state and finds none in these, so the next run starts from scratch. Did you mean jsonencode({ completed = { singer_state = { ... } } })?\n\n"+listed(bare))
	}
}

// entryShape says what an entry is.
const entryShape = "Each entry is a JSON object with the keys completed and partial, both optional, as jsonencode({ completed = { singer_state = { ... } } }) writes it."

func addInvalidEntry(diags *diag.Diagnostics, at path.Path, err error) {
	detail := entryShape
	if errors.Is(err, bookmark.ErrDuplicateKey) {
		detail = "JSON objects with a repeated key are refused, since readers differ in which value they take."
	}
	diags.AddAttributeError(at, "Invalid state entry", detail+"\n\n"+sentence(err))
}

// lacksState reports whether a declared payload has no singer_state, though it holds something.
func lacksState(text string) bool {
	if bookmark.IsEmpty(text) {
		return false
	}
	document, err := bookmark.Parse(text)
	return err == nil && !document.HasSingerState()
}
