package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// User is a user of the server, with a settings profile of the same name.
type User struct {
	// Name is an XML element: letters, digits, `_`, `-` and `.`, the first a letter or `_`. Not `default`.
	Name string
	// Password may be empty.
	Password string
	// Readonly is ClickHouse's setting of that name: 0 may do everything granted, 1 only reads and may not change a
	// setting, 2 only reads.
	Readonly int
	// Grants are whole statements, without the user: "GRANT SELECT ON meltano.*". None means every right.
	Grants []string
	// Settings are the values of the user's profile.
	Settings map[string]string
	// Fixed are names of settings that the user may not change.
	Fixed []string
	// Least are the least values that the user may give to settings.
	Least map[string]string
}

// element is an XML element; a name is checked, a text escaped.
type element struct {
	name     string
	text     string
	children []element
}

func branch(name string, children ...element) element { return element{name: name, children: children} }
func leaf(name, text string) element                  { return element{name: name, text: text} }

var xmlName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// MarshalXML implements [xml.Marshaler].
func (e element) MarshalXML(enc *xml.Encoder, _ xml.StartElement) error {
	if !xmlName.MatchString(e.name) {
		return fmt.Errorf("%q cannot be the name of a user or setting in users.xml", e.name)
	}
	start := xml.StartElement{Name: xml.Name{Local: e.name}}
	if err := enc.EncodeToken(start); err != nil {
		return err
	}
	if e.text != "" {
		if err := enc.EncodeToken(xml.CharData(e.text)); err != nil {
			return err
		}
	}
	for _, child := range e.children {
		if err := enc.Encode(child); err != nil {
			return err
		}
	}
	return enc.EncodeToken(start.End())
}

const (
	configFile = "config.xml"
	usersFile  = "users.xml"
	dataFolder = "data"

	defaultUser = "default"
)

// writeConfig writes the server's configuration into its folder. The HTTP root will answer with the given word.
func writeConfig(opts Options, rootAnswer string) error {
	config := []element{
		leaf("users_config", filepath.Join(opts.Dir, usersFile)),
		leaf("http_server_default_response", rootAnswer),
	}
	if opts.QueryLog {
		config = append(config, branch("query_log",
			leaf("database", "system"),
			leaf("table", "query_log"),
			leaf("flush_interval_milliseconds", "500"),
		))
	}
	for _, u := range opts.Users {
		if u.Name == defaultUser {
			return errors.New("the user default cannot be changed: the engine itself logs in as that user, without a password")
		}
	}
	if err := writeXML(filepath.Join(opts.Dir, configFile), config); err != nil {
		return fmt.Errorf("write the server's configuration: %w", err)
	}
	if err := writeXML(filepath.Join(opts.Dir, usersFile), users(opts.Users)); err != nil {
		return fmt.Errorf("write the server's users: %w", err)
	}
	return nil
}

// users renders users.xml.
func users(list []User) []element {
	profiles, accounts := branch("profiles"), branch("users")
	for _, u := range append([]User{{Name: defaultUser}}, list...) {
		profiles.children = append(profiles.children, u.profile())
		accounts.children = append(accounts.children, u.account())
	}
	return []element{profiles, accounts, branch("quotas", branch("default"))}
}

func (u User) profile() element {
	p := branch(u.Name)
	if u.Readonly != 0 {
		p.children = append(p.children, leaf("readonly", strconv.Itoa(u.Readonly)))
	}
	for _, name := range slices.Sorted(maps.Keys(u.Settings)) {
		p.children = append(p.children, leaf(name, u.Settings[name]))
	}
	constraints := branch("constraints")
	for _, name := range u.Fixed {
		constraints.children = append(constraints.children, branch(name, branch("readonly")))
	}
	for _, name := range slices.Sorted(maps.Keys(u.Least)) {
		constraints.children = append(constraints.children, branch(name, leaf("min", u.Least[name])))
	}
	if len(constraints.children) > 0 {
		p.children = append(p.children, constraints)
	}
	return p
}

func (u User) account() element {
	// The hash, so that the file holds no password; the empty password has its own spelling.
	password := branch("no_password")
	if u.Password != "" {
		sum := sha256.Sum256([]byte(u.Password))
		password = leaf("password_sha256_hex", hex.EncodeToString(sum[:]))
	}
	a := branch(u.Name,
		password,
		branch("networks", leaf("ip", "::/0")),
		leaf("profile", u.Name),
		leaf("quota", "default"),
	)
	if len(u.Grants) == 0 {
		a.children = append(a.children, leaf("access_management", "1"))
		return a
	}
	grants := branch("grants")
	for _, statement := range u.Grants {
		grants.children = append(grants.children, leaf("query", statement))
	}
	a.children = append(a.children, grants)
	return a
}

func writeXML(path string, content []element) error {
	var text bytes.Buffer
	enc := xml.NewEncoder(&text)
	enc.Indent("", "  ")
	if err := enc.Encode(branch("clickhouse", content...)); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}
