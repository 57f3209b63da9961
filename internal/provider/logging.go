package provider

import (
	"context"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// newLogger returns the logger for the layers below, which know no Terraform. A record goes to the Terraform log of
// the request whose context it was logged with; one without such a context goes nowhere. Secrets are masked in it.
func newLogger(secrets ...string) *slog.Logger {
	h := &logHandler{}
	for _, secret := range secrets {
		if secret != "" { // masking an empty string would mask between any two characters
			h.secrets = append(h.secrets, secret)
		}
	}
	return slog.New(h)
}

// logHandler forwards to tflog.
type logHandler struct {
	secrets []string
	attrs   []slog.Attr
	group   string // prefix of keys, with its dot
}

// Enabled is always true: tflog knows the level and does not tell.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	fields := make(map[string]any, len(h.attrs)+record.NumAttrs())
	for _, attr := range h.attrs {
		addField(fields, "", attr)
	}
	record.Attrs(func(attr slog.Attr) bool {
		addField(fields, h.group, attr)
		return true
	})

	ctx = maskSecrets(ctx, h.secrets...)
	switch {
	case record.Level >= slog.LevelError:
		tflog.Error(ctx, record.Message, fields)
	case record.Level >= slog.LevelWarn:
		tflog.Warn(ctx, record.Message, fields)
	case record.Level >= slog.LevelInfo:
		tflog.Info(ctx, record.Message, fields)
	default:
		tflog.Debug(ctx, record.Message, fields)
	}
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append([]slog.Attr{}, h.attrs...)
	for _, attr := range attrs {
		attr.Key = h.group + attr.Key
		next.attrs = append(next.attrs, attr)
	}
	return &next
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group += name + "."
	return &next
}

// addField flattens groups into dotted keys. Errors and other values become text here, so that masking sees it.
func addField(fields map[string]any, prefix string, attr slog.Attr) {
	value := attr.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if attr.Key != "" {
			fields[prefix+attr.Key] = value.String()
		}
		return
	}
	if attr.Key != "" {
		prefix += attr.Key + "."
	}
	for _, member := range value.Group() {
		addField(fields, prefix, member)
	}
}

// maskSecrets masks the secrets in all that is logged with the context.
func maskSecrets(ctx context.Context, secrets ...string) context.Context {
	ctx = tflog.MaskMessageStrings(ctx, secrets...)
	return tflog.MaskAllFieldValuesStrings(ctx, secrets...)
}
