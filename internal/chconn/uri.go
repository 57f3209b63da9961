package chconn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// FromURI reads the URI of Meltano's state backend, clickhouse://user:password@host:port/database, which means HTTP
// (port 8123 unless it says otherwise, host localhost). Its database and query are left aside: Meltano keeps its tables
// elsewhere, and reads no query either.
//
// It splits the text as Meltano does, so that whatever works there works here: a stray "%" in a password stays as it is.
// No error repeats any part of the URI, since any part may be the password.
func FromURI(uri string) (Config, error) {
	scheme, rest, found := strings.Cut(uri, "://")
	if !found || !strings.EqualFold(scheme, "clickhouse") {
		return Config{}, errors.New("the URI does not begin with clickhouse://")
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	config := Config{Protocol: HTTP, Host: "localhost"}

	address := authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		username, password, _ := strings.Cut(authority[:at], ":")
		config.Username, config.Password = unescape(username), unescape(password)
		address = authority[at+1:]
	} else if authority != rest && strings.Contains(rest, "@") {
		return Config{}, errors.New(`the URI's user or password holds a "/", "?" or "#", which must be written as %2F, %3F or %23`)
	}

	host, port := address, ""
	if colon := strings.LastIndex(address, ":"); colon > strings.LastIndex(address, "]") {
		host, port = address[:colon], address[colon+1:]
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if host != "" {
		config.Host = strings.ToLower(host)
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Config{}, fmt.Errorf("the URI's port is not a number between 1 and 65535")
		}
		config.Port = int(n)
	}
	return config, nil
}

// unescape decodes %XX and leaves alone what is no such thing.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(b))
				i += 2
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
