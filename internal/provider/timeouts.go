package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// defaultTimeout bounds an operation whose timeouts say nothing. It is the last resort: the waits inside, for a
// connection, a statement and a lock, have bounds of their own.
const defaultTimeout = 20 * time.Minute

// timeoutsAttribute describes the timeouts of every resource.
func timeoutsAttribute(ctx context.Context) schema.Attribute {
	attribute := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, CreateDescription: `How long a create may take, such as "5m". Default: 20m.`,
		Read: true, ReadDescription: `How long a refresh may take, such as "1m". Default: 20m.`,
		Update: true, UpdateDescription: `How long an update may take, such as "5m". Default: 20m.`,
		Delete: true, DeleteDescription: `How long a destroy may take, such as "5m". Default: 20m. It has to be in the state before the destroy.`,
	})
	if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long a whole operation may take, all waits included. What bounds the waits themselves stands in the provider's configuration."
		return nested
	}
	return attribute
}
