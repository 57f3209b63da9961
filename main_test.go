package main

import "testing"

func TestQuiet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		environ []string
		quiet   bool
	}{
		"nothing asked for":     {[]string{"PATH=/bin"}, true},
		"empty":                 {[]string{"TF_LOG="}, true},
		"where to, but no what": {[]string{"TF_LOG_PATH=/tmp/log"}, true},
		"Terraform's own":       {[]string{"TF_LOG_CORE=TRACE"}, true},
		"all":                   {[]string{"TF_LOG=INFO"}, false},
		"providers":             {[]string{"TF_LOG_PROVIDER=DEBUG"}, false},
		"this provider":         {[]string{"TF_LOG_PROVIDER_CLICKHOUSESTATE=DEBUG"}, false},
		"the SDK":               {[]string{"TF_LOG_SDK=TRACE"}, false},
		"a part of it":          {[]string{"TF_LOG_SDK_PROTO=TRACE"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := map[string]string{}
			quiet(tc.environ, func(key, value string) error { set[key] = value; return nil })
			for _, key := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_CLICKHOUSESTATE"} {
				if got := set[key] == "OFF"; got != tc.quiet {
					t.Errorf("set %v, want quiet: %t", set, tc.quiet)
				}
			}
		})
	}
}
