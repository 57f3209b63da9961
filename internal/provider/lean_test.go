package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

// The provider writes no log that nobody asked for, and leaves nothing out of one that somebody did. Its own standard
// error is what is looked at: Terraform drops what it did not ask for, but only after the provider has written it.
func TestProvider_logs(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	for _, tt := range []struct {
		name  string
		env   map[string]string
		lines []string // one of each has to be there; none means that there is none
	}{
		{"no level", nil, nil},
		{"where to, but no level", map[string]string{"TF_LOG_PATH": "log"}, nil},
		{"Terraform's own", map[string]string{"TF_LOG_CORE": "TRACE", "TF_LOG_PATH": "log"}, nil},
		{"TRACE", map[string]string{"TF_LOG": "TRACE", "TF_LOG_PATH": "log"}, []string{
			// The protocol, the framework and the provider itself.
			"sdk.proto Received request ConfigureProvider", "sdk.proto Received request ApplyResourceChange", "sdk.proto Served request ApplyResourceChange",
			"sdk.framework Calling provider defined Resource Create ApplyResourceChange", "provider clickhouse statement ApplyResourceChange",
		}},
		{"the SDK", map[string]string{"TF_LOG_SDK": "TRACE", "TF_LOG_PROVIDER": "TRACE", "TF_LOG_PATH": "log"}, []string{"sdk.proto Received request ApplyResourceChange"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := s.workspace(t, formExport.of(map[string]string{"dev:" + tt.name: marked("T0")}))
			program := filepath.Join(t.TempDir(), filepath.Base(acctest.Provider(t)))
			log := filepath.Join(w.Dir, "stderr")
			script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" 2>>'%s'\n", acctest.Provider(t), log)
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			w.Override(t, program)
			for name, value := range tt.env {
				w.Setenv(name, value)
			}
			succeed(t, w, "apply -auto-approve", "1 added")
			written, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			// But for the few lines of the handshake, which name no module.
			if unasked := strings.Count(string(written), "@module"); len(tt.lines) == 0 && unasked > 0 {
				t.Errorf("the provider wrote %d lines that nobody asked for:\n%s", unasked, written)
			}
			for _, want := range tt.lines {
				if !hasLine(string(written), want) {
					t.Errorf("no line with %s in %d bytes:\n%.1000s", want, len(written), written)
				}
			}
		})
	}
}

// hasLine tells whether a line of a log has a module, a message and a request.
func hasLine(log, want string) bool {
	module, rest, _ := strings.Cut(want, " ")
	last := strings.LastIndex(rest, " ")
	for line := range strings.Lines(log) {
		if strings.Contains(line, module) && strings.Contains(line, rest[:last]) && strings.Contains(line, rest[last+1:]) {
			return true
		}
	}
	return false
}
