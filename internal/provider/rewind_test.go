package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

// What a write is said to set back. How values compare is tested in package bookmark.
func TestRewind_write(t *testing.T) {
	t.Parallel()
	unknown := payload{basetypes.NewStringUnknown()}
	const (
		may, june = `{"singer_state":{"bookmarks":{"a":{"v":"2026-05-01"},"b":{"v":1204}}}}`, `{"singer_state":{"bookmarks":{"a":{"v":"2026-06-01"},"b":{"v":1204}}}}`
		onlyB     = `{"singer_state":{"bookmarks":{"b":{"v":1204}}}}`
		token     = `{"singer_state":{"bookmarks":{"a":{"v":"hunter2"}}}}`
		other     = `{"singer_state":{"bookmarks":{"a":{"v":"hunter3"}}}}`
	)
	for name, tc := range map[string]struct {
		policy          rewindPolicy
		stored, planned payload
		want            []string // in the diagnostic; none where there is to be none
	}{
		"same":              {rewindWarn, of(may), of(may), nil},
		"forward":           {rewindWarn, of(may), of(june), nil},
		"back":              {rewindWarn, of(june), of(may), []string{`warning: State entry "dev:x" would be set back`, "\n\n  a: v goes from 2026-06-01 to 2026-05-01 (31 days 0:00:00 back)\n\n", `write_policy = "seed"`, `on_rewind = "allow"`}},
		"back, an error":    {rewindError, of(june), of(may), []string{`error: State entry "dev:x" would be set back`, "2026-05-01", `set on_rewind to "warn" or "allow"`}},
		"back, replaced":    {rewindReplace, of(june), of(may), []string{`error: State entry "dev:x" would be set back`, "2026-05-01", "change it in place", `on_rewind = "allow"`}},
		"back, allowed":     {rewindAllow, of(june), of(may), nil},
		"back, not known":   {"", of(june), of(may), []string{"warning: "}},
		"one vanishes":      {rewindWarn, of(may), of(onlyB), []string{"would be set back", "\n  a: bookmark vanishes (was 2026-05-01)\n"}},
		"all vanish":        {rewindWarn, of(may), of("{}"), []string{"would lose all its bookmarks", "a full refresh", "\n  a: bookmark vanishes", "\n  b: bookmark vanishes"}},
		"another shape":     {rewindWarn, of(may), of(`{"singer_state":{"bookmarks":{"a":["2026-05-01"],"b":true}}}`), []string{"would lose all its bookmarks", "\n  a: bookmark vanishes (was 2026-05-01, becomes a list)\n"}},
		"no order":          {rewindError, of(token), of(other), nil},
		"a token vanishes":  {rewindWarn, of(token), of("{}"), []string{"would lose all its bookmarks", "a text of 7 characters"}},
		"first bookmark":    {rewindWarn, of("{}"), of(may), nil},
		"planned unknown":   {rewindError, of(may), unknown, nil},
		"planned no state":  {rewindError, of(may), null, nil},
		"stored no state":   {rewindError, null, of(may), nil},
		"planned is a list": {rewindError, of(may), of("[]"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			rewind{stateID: "dev:x", policy: tc.policy, stored: tc.stored, planned: tc.planned}.addWrite(&diags)
			compareSaid(t, diags, tc.want)
		})
	}
}

func TestRewind_destroy(t *testing.T) {
	t.Parallel()
	bookmarks := of(`{"singer_state":{"bookmarks":{"a":{"v":"2026-05-01"}}}}`)
	for name, tc := range map[string]struct {
		policy rewindPolicy
		stored payload
		want   []string
	}{
		"bookmarks":     {rewindWarn, bookmarks, []string{`warning: State entry "dev:x" would lose all its bookmarks`, "full refresh", "\n  a: bookmark vanishes (was 2026-05-01)\n", `write_policy = "seed" together with deletion_policy = "retain"`, "terraform state rm", "moved block"}},
		"a replacement": {rewindReplace, bookmarks, []string{`error: State entry "dev:x" would lose all its bookmarks`, "known only after that", "change it in place"}},
		"an error":      {rewindError, bookmarks, []string{`error: State entry "dev:x" would lose all its bookmarks`, `apply on_rewind = "warn" or "allow" first`}},
		"allowed":       {rewindAllow, bookmarks, nil},
		"no bookmarks":  {rewindError, of(`{"singer_state":{"bookmarks":{}}}`), nil},
		"no state":      {rewindError, null, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			rewind{stateID: "dev:x", policy: tc.policy, stored: tc.stored, planned: of("{}")}.addDestroy(&diags)
			compareSaid(t, diags, tc.want)
		})
	}
}

// Of every shape of state, a destroy says something if, and only if, the next run would be a full refresh.
func TestRewind_destroyShapes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../examples/complete/state-export.json")
	if err != nil {
		t.Fatal(err)
	}
	export, err := bookmark.ParseExport(string(raw))
	if err != nil || len(export) != 20 {
		t.Fatalf("%d states, %v", len(export), err)
	}
	spoke := 0
	for id, entry := range export {
		stored, _ := merge(of(entry.Completed), of(entry.Partial))
		document, err := bookmark.Parse(stored.ValueString())
		if err != nil {
			t.Fatal(err)
		}
		var diags diag.Diagnostics
		rewind{stateID: id, stored: stored, planned: of("{}")}.addDestroy(&diags)
		if refresh := bookmark.FullRefresh(document, bookmark.Document{}); refresh != (len(diags) == 1) {
			t.Errorf("%s: a full refresh: %t, but it said %v", id, refresh, diags)
		}
		spoke += len(diags)
	}
	if spoke < 15 {
		t.Errorf("it spoke of %d states, want most", spoke)
	}
}

// compareSaid fails unless there is one diagnostic with these words, or none.
func compareSaid(t *testing.T, diags diag.Diagnostics, want []string) {
	t.Helper()
	if len(diags) > 1 || len(diags) == 0 != (len(want) == 0) {
		t.Fatalf("got %v, want %q", diags, want)
	}
	for _, d := range diags {
		got := fmt.Sprintf("%s: %s: %s", strings.ToLower(d.Severity().String()), d.Summary(), d.Detail())
		for _, words := range want {
			if !strings.Contains(got, words) {
				t.Errorf("got %q, want %q in it", got, words)
			}
		}
		if strings.Contains(got, "hunter") {
			t.Errorf("a token is in %q", got)
		}
	}
}

// An entry may have thousands of partitions.
func TestRewind_manyLines(t *testing.T) {
	t.Parallel()
	bookmarks := func(day int) payload {
		var streams []string
		for i := range 1000 {
			streams = append(streams, fmt.Sprintf(`"stream%03d":{"since":"2026-01-%02d"}`, i, day))
		}
		return of(`{"singer_state":{"bookmarks":{` + strings.Join(streams, ",") + `}}}`)
	}
	var diags diag.Diagnostics
	rewind{stateID: "dev:x", policy: rewindWarn, stored: bookmarks(2), planned: bookmarks(1)}.addWrite(&diags)
	compareSaid(t, diags, []string{
		"\n  stream000: since goes from 2026-01-02 to 2026-01-01 (1 day 0:00:00 back)\n",
		"\n  stream019: since goes from 2026-01-02 to 2026-01-01 (1 day 0:00:00 back)\n  and 980 more\n\n",
	})
	if strings.Contains(diags[0].Detail(), "stream020") {
		t.Error("more than 20 values are named")
	}
}
