// Command docs prints the provider's schemas, as `terraform providers schema -json` does, for the documentation generator.
//
// It asks the provider itself: Terraform 1.11 leaves out identities, list resources and actions, and this way the
// documentation is the same whatever Terraform is installed, or none.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/provider"
)

// address is where the generator looks for the provider that it was given the name of.
const address = "registry.terraform.io/hashicorp/clickhousestate"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server := providerserver.NewProtocol6(provider.New("docs"))()
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return err
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return err
	}
	for _, d := range append(schemas.Diagnostics, identities.Diagnostics...) {
		return fmt.Errorf("%s: %s", d.Summary, d.Detail)
	}

	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{
		"format_version": "1.0",
		"provider_schemas": map[string]any{address: map[string]any{
			"provider":                   newSchema(schemas.Provider),
			"resource_schemas":           each(schemas.ResourceSchemas, newSchema),
			"data_source_schemas":        each(schemas.DataSourceSchemas, newSchema),
			"ephemeral_resource_schemas": each(schemas.EphemeralResourceSchemas, newSchema),
			"list_resource_schemas":      each(schemas.ListResourceSchemas, newSchema),
			"action_schemas":             each(schemas.ActionSchemas, func(a *tfprotov6.ActionSchema) schema { return newSchema(a.Schema) }),
			"resource_identity_schemas":  each(identities.IdentitySchemas, newIdentity),
			"functions":                  each(schemas.Functions, newFunction),
		}},
	})
}

// The types below are named like Terraform's JSON output.
type (
	schema struct {
		Version int64 `json:"version"`
		Block   block `json:"block"`
	}
	block struct {
		Attributes      map[string]attribute   `json:"attributes,omitempty"`
		BlockTypes      map[string]nestedBlock `json:"block_types,omitempty"`
		Description     string                 `json:"description,omitempty"`
		DescriptionKind string                 `json:"description_kind,omitempty"`
		Deprecated      bool                   `json:"deprecated,omitempty"`
	}
	nestedBlock struct {
		NestingMode string `json:"nesting_mode"`
		Block       block  `json:"block"`
	}
	attribute struct {
		Type            tftypes.Type `json:"type,omitempty"`
		NestedType      *nestedType  `json:"nested_type,omitempty"`
		Description     string       `json:"description,omitempty"`
		DescriptionKind string       `json:"description_kind,omitempty"`
		Deprecated      bool         `json:"deprecated,omitempty"`
		Required        bool         `json:"required,omitempty"`
		Optional        bool         `json:"optional,omitempty"`
		Computed        bool         `json:"computed,omitempty"`
		Sensitive       bool         `json:"sensitive,omitempty"`
		WriteOnly       bool         `json:"write_only,omitempty"`
	}
	nestedType struct {
		Attributes  map[string]attribute `json:"attributes"`
		NestingMode string               `json:"nesting_mode"`
	}
	identity struct {
		Version    int64                        `json:"version"`
		Attributes map[string]identityAttribute `json:"attributes"`
	}
	identityAttribute struct {
		Type              tftypes.Type `json:"type"`
		Description       string       `json:"description,omitempty"`
		RequiredForImport bool         `json:"required_for_import,omitempty"`
		OptionalForImport bool         `json:"optional_for_import,omitempty"`
	}
	function struct {
		Description        string       `json:"description,omitempty"`
		Summary            string       `json:"summary,omitempty"`
		DeprecationMessage string       `json:"deprecation_message,omitempty"`
		ReturnType         tftypes.Type `json:"return_type"`
		Parameters         []*parameter `json:"parameters,omitempty"`
		VariadicParameter  *parameter   `json:"variadic_parameter,omitempty"`
	}
	parameter struct {
		Name        string       `json:"name"`
		Description string       `json:"description,omitempty"`
		IsNullable  bool         `json:"is_nullable,omitempty"`
		Type        tftypes.Type `json:"type"`
	}
)

// lower is how Terraform writes the protocol's names.
func lower(name fmt.Stringer) string { return strings.ToLower(name.String()) }

// each converts the values of a map.
func each[From, To any](from map[string]From, convert func(From) To) map[string]To {
	to := make(map[string]To, len(from))
	for name, value := range from {
		to[name] = convert(value)
	}
	return to
}

func newSchema(s *tfprotov6.Schema) schema {
	return schema{Version: s.Version, Block: newBlock(s.Block)}
}

func newBlock(b *tfprotov6.SchemaBlock) block {
	blocks := make(map[string]nestedBlock, len(b.BlockTypes))
	for _, nested := range b.BlockTypes {
		blocks[nested.TypeName] = nestedBlock{NestingMode: lower(nested.Nesting), Block: newBlock(nested.Block)}
	}
	return block{
		Attributes:      newAttributes(b.Attributes),
		BlockTypes:      blocks,
		Description:     b.Description,
		DescriptionKind: lower(b.DescriptionKind),
		Deprecated:      b.Deprecated,
	}
}

func newAttributes(list []*tfprotov6.SchemaAttribute) map[string]attribute {
	attributes := make(map[string]attribute, len(list))
	for _, a := range list {
		converted := attribute{
			Type:            a.Type,
			Description:     a.Description,
			DescriptionKind: lower(a.DescriptionKind),
			Deprecated:      a.Deprecated,
			Required:        a.Required,
			Optional:        a.Optional,
			Computed:        a.Computed,
			Sensitive:       a.Sensitive,
			WriteOnly:       a.WriteOnly,
		}
		if nested := a.NestedType; nested != nil {
			converted.NestedType = &nestedType{Attributes: newAttributes(nested.Attributes), NestingMode: lower(nested.Nesting)}
		}
		attributes[a.Name] = converted
	}
	return attributes
}

func newIdentity(s *tfprotov6.ResourceIdentitySchema) identity {
	converted := identity{Version: s.Version, Attributes: make(map[string]identityAttribute, len(s.IdentityAttributes))}
	for _, a := range s.IdentityAttributes {
		converted.Attributes[a.Name] = identityAttribute{
			Type:              a.Type,
			Description:       a.Description,
			RequiredForImport: a.RequiredForImport,
			OptionalForImport: a.OptionalForImport,
		}
	}
	return converted
}

func newFunction(f *tfprotov6.Function) function {
	converted := function{
		Description:        f.Description,
		Summary:            f.Summary,
		DeprecationMessage: f.DeprecationMessage,
		ReturnType:         f.Return.Type,
	}
	for _, p := range f.Parameters {
		converted.Parameters = append(converted.Parameters, newParameter(p))
	}
	if f.VariadicParameter != nil {
		converted.VariadicParameter = newParameter(f.VariadicParameter)
	}
	return converted
}

func newParameter(p *tfprotov6.FunctionParameter) *parameter {
	return &parameter{Name: p.Name, Description: p.Description, IsNullable: p.AllowNullValue, Type: p.Type}
}
