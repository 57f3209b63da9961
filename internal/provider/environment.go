package provider

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// Where the connection may come from, besides the configuration. CLICKHOUSE_* names the server for any program,
// MELTANO_* is how Meltano itself is told, so that a shell set up for Meltano needs nothing else.
var (
	clickhouseVariables = map[string]string{
		"host":     "CLICKHOUSE_HOST",
		"port":     "CLICKHOUSE_PORT",
		"protocol": "CLICKHOUSE_PROTOCOL",
		"username": "CLICKHOUSE_USER",
		"password": "CLICKHOUSE_PASSWORD",
		"secure":   "CLICKHOUSE_SECURE",
	}
	meltanoVariables = map[string]string{
		"host":     "MELTANO_STATE_BACKEND_CLICKHOUSE_HOST",
		"port":     "MELTANO_STATE_BACKEND_CLICKHOUSE_PORT",
		"username": "MELTANO_STATE_BACKEND_CLICKHOUSE_USER",
		"password": "MELTANO_STATE_BACKEND_CLICKHOUSE_PASSWORD",
		"secure":   "MELTANO_STATE_BACKEND_CLICKHOUSE_SECURE",
	}
)

const (
	envMeltanoURI    = "MELTANO_STATE_BACKEND_URI"
	envMeltanoSchema = "MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA"
	envMeltanoTable  = "MELTANO_STATE_BACKEND_CLICKHOUSE_TABLE"
)

// A setting is a value as text, and the environment variable that it comes from; empty for an attribute.
type setting struct {
	value, variable string
}

// settings are the attributes that say where the server is, by name, as far as one source names them.
type settings map[string]setting

// over returns the settings with the gaps filled from lower.
func (s settings) over(lower settings) settings {
	all := maps.Clone(lower)
	maps.Copy(all, s)
	return all
}

// environment resolves what the configuration leaves open. It reports what it cannot use.
type environment struct {
	getenv func(string) string
	diags  *diag.Diagnostics
}

// resolve decides where the server is. In falling order:
//
//  1. the attributes
//  2. meltano_uri, which names the host, the port, the protocol and TLS together
//  3. CLICKHOUSE_*
//  4. MELTANO_STATE_BACKEND_CLICKHOUSE_*
//  5. MELTANO_STATE_BACKEND_URI, like 2
//
// So an attribute always beats the environment, and meltano_uri is an attribute: a CLICKHOUSE_PORT that was meant for
// another server cannot bend it. For the same reason Meltano's variables, 4 and 5, speak of one server: where the host
// comes from above, only their user and password count, and 5 not at all.
func (e environment) resolve(model providerModel) settings {
	above := attributes(model)
	if uri := model.MeltanoURI.ValueString(); uri != "" {
		above = above.over(e.uri(uri, ""))
	}
	above = above.over(e.read(clickhouseVariables))

	meltano := e.read(meltanoVariables)
	if _, found := above["host"]; found {
		for _, of := range []string{"host", "port", "secure"} {
			delete(meltano, of)
		}
		return above.over(meltano)
	}
	if _, found := meltano["host"]; found {
		meltano["protocol"] = setting{value: protocolHTTP} // the only one that Meltano speaks
	}
	if uri := e.getenv(envMeltanoURI); uri != "" {
		meltano = meltano.over(e.uri(uri, envMeltanoURI))
	}
	return above.over(meltano)
}

// attributes returns what the configuration itself says.
func attributes(model providerModel) settings {
	s := settings{}
	for name, value := range map[string]types.String{
		"host": model.Host, "protocol": model.Protocol, "username": model.Username, "password": model.Password,
	} {
		if !value.IsNull() {
			s[name] = setting{value: value.ValueString()}
		}
	}
	if !model.Port.IsNull() {
		s["port"] = setting{value: strconv.FormatInt(model.Port.ValueInt64(), 10)}
	}
	if !model.Secure.IsNull() {
		s["secure"] = setting{value: strconv.FormatBool(model.Secure.ValueBool())}
	}
	return s
}

// read returns what environment variables say. An empty one is unset.
func (e environment) read(variables map[string]string) settings {
	s := settings{}
	for name, variable := range variables {
		if value := e.getenv(variable); value != "" {
			s[name] = setting{value: value, variable: variable}
		}
	}
	return s
}

// uri returns what Meltano's URI says. It answers for the whole address: a port that it leaves open is the usual one.
func (e environment) uri(uri, variable string) settings {
	c, err := statestore.FromURI(uri)
	if err != nil {
		e.refuse("meltano_uri", variable, sentence(err))
		return settings{}
	}
	s := settings{
		"host":     {value: c.Host, variable: variable},
		"port":     {variable: variable},
		"protocol": {value: string(c.Protocol), variable: variable},
		"secure":   {value: strconv.FormatBool(c.Secure), variable: variable},
	}
	if c.Port != 0 {
		s["port"] = setting{value: strconv.Itoa(c.Port), variable: variable}
	}
	if c.Username != "" {
		s["username"] = setting{value: c.Username, variable: variable}
	}
	if c.Password != "" { // else it may be kept apart from the URI
		s["password"] = setting{value: c.Password, variable: variable}
	}
	return s
}

// connection returns the settings as the core wants them. What an attribute's validator would refuse is refused from
// the environment too.
func (e environment) connection(s settings) statestore.Connection {
	c := statestore.Connection{
		Host:     s["host"].value,
		Protocol: statestore.Protocol(s["protocol"].value),
		Username: s["username"].value,
		Password: s["password"].value,
	}
	if c.Host == "" {
		e.diags.AddAttributeError(path.Root("host"), "Missing ClickHouse host",
			"Set host or meltano_uri in the provider's configuration, or the environment variable CLICKHOUSE_HOST or "+envMeltanoURI+".")
	}
	if protocol := s["protocol"]; protocol.value != "" && !slices.Contains(statestore.Protocols(), c.Protocol) {
		e.refuse("protocol", protocol.variable, fmt.Sprintf("Expected %q or %q, got: %q.", protocolNative, protocolHTTP, protocol.value))
	}
	if port := s["port"]; port.value != "" {
		n, err := strconv.ParseUint(port.value, 10, 16)
		if err != nil || n == 0 {
			e.refuse("port", port.variable, fmt.Sprintf("Expected a number from 1 to 65535, got: %q.", port.value))
		}
		c.Port = int(n)
	}
	if secure := s["secure"]; secure.value != "" {
		on, err := strconv.ParseBool(strings.ToLower(secure.value))
		if err != nil {
			e.refuse("secure", secure.variable, fmt.Sprintf("Expected true or false, got: %q.", secure.value))
		}
		c.Secure = on
	}
	return c
}

// name returns the provider's default for a database or table: the attribute, the variable or the fallback.
func (e environment) name(attribute string, value types.String, variable, fallback string) types.String {
	if !value.IsNull() {
		return value
	}
	fromEnvironment := e.getenv(variable)
	switch {
	case fromEnvironment == "":
		return types.StringValue(fallback)
	case strings.Contains(fromEnvironment, "/"):
		e.refuse(attribute, variable, fmt.Sprintf("%s, got: %q.", sentenceStart(nameRule), fromEnvironment))
	}
	return types.StringValue(fromEnvironment)
}

// refuse reports a value where it was given: at the attribute, or by the name of the environment variable.
func (e environment) refuse(attribute, variable, detail string) {
	summary := "Invalid " + attribute
	if variable != "" {
		summary = "Invalid environment variable " + variable
	}
	e.diags.AddAttributeError(path.Root(attribute), summary, detail)
}
