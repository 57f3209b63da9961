package chconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// describe names a connection in messages: all that decides which server is reached and how, and no password.
func describe(host string, port int, protocol Protocol, secure bool, user string) string {
	onOff := "off"
	if secure {
		onOff = "on"
	}
	return fmt.Sprintf("%s connection to %s (TLS %s) as user %q", protocol, Config{Host: host, Port: port}.addr(), onOff, user)
}

// connectError explains why there is no connection.
func (c Config) connectError(err error) *ConnectError {
	return &ConnectError{
		Host: c.Host, Port: c.Port, Protocol: c.Protocol, TLS: c.Secure, User: c.Username,
		Hint: c.hint(err),
		Err:  plain(err),
	}
}

// hint says what to change in the configuration.
func (c Config) hint(err error) string {
	var (
		server *ServerError
		answer *foreignError
		text   = err.Error()
	)
	if hint := c.certificateHint(err); hint != "" {
		return hint
	}
	switch {
	case errors.As(err, &server):
		if server.refused() {
			return "check username and password"
		}
		return ""
	case errors.As(err, new(*net.DNSError)):
		return "check host"
	}
	if hint := c.portHint(); hint != "" {
		return hint
	}
	// The port tells nothing: go by what came back first.
	switch {
	case errors.As(err, &answer):
		return c.answerHint(answer)
	case errors.As(err, new(tls.RecordHeaderError)), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the port does not speak TLS: " + c.change(c.Protocol, false)
	case strings.Contains(text, "unexpected packet [72]"): // the H of HTTP/1.1
		return "the port speaks HTTP: " + c.change(HTTP, c.Secure)
	case strings.Contains(text, "unexpected packet [21]"), strings.Contains(text, `malformed HTTP response "\x15`): // an alert
		return "the port speaks TLS: " + c.change(c.Protocol, true)
	case strings.Contains(text, "malformed HTTP response"):
		return "the port does not speak HTTP: " + c.change(Native, c.Secure)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens there: check host and port (%d is the usual port for %s)", DefaultPort(c.Protocol, c.Secure), mode(c.Protocol, c.Secure))
	case errors.Is(err, io.EOF) && !c.Secure:
		return "the port may speak TLS: " + c.change(c.Protocol, true)
	default:
		return fmt.Sprintf("check that the server can be reached and that the port speaks %s", mode(c.Protocol, c.Secure))
	}
}

// portHint speaks up where the port is the usual one of something else.
func (c Config) portHint() string {
	for _, protocol := range Protocols() {
		for _, secure := range []bool{false, true} {
			if c.Port == DefaultPort(protocol, secure) && (protocol != c.Protocol || secure != c.Secure) {
				return fmt.Sprintf("%d is the usual port for %s: %s", c.Port, mode(protocol, secure), c.change(protocol, secure))
			}
		}
	}
	return ""
}

// change says how to get to speak a protocol, with TLS or without, or else to a port for what is spoken now.
func (c Config) change(protocol Protocol, secure bool) string {
	var set []string
	if protocol != c.Protocol {
		set = append(set, fmt.Sprintf("protocol = %q", protocol))
	}
	if secure != c.Secure {
		set = append(set, fmt.Sprintf("secure = %t", secure))
	}
	return fmt.Sprintf("set %s, or use port %d, the usual one for %s",
		strings.Join(set, " and "), DefaultPort(c.Protocol, c.Secure), mode(c.Protocol, c.Secure))
}

// mode names what a port speaks.
func mode(protocol Protocol, secure bool) string {
	name := "the native protocol"
	if protocol == HTTP {
		name = "HTTP"
	}
	if secure {
		return name + " with TLS"
	}
	return name + " without TLS"
}

// certificateHint explains failures of the TLS handshake.
func (c Config) certificateHint(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
	)
	switch {
	case errors.As(err, &authority):
		return "set tls.ca_cert to the PEM text of the authority that signed the server's certificate"
	case errors.As(err, &name):
		return "set tls.server_name to a name in the server's certificate, or correct host"
	case errors.As(err, &invalid):
		return "the server's certificate is not valid"
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls: "):
		return "the server refused the handshake: it may ask for a certificate (tls.client_cert and tls.client_key)"
	default:
		return ""
	}
}

// answerHint explains an HTTP answer that did not come from where it should.
func (c Config) answerHint(answer *foreignError) string {
	switch {
	case answer.native:
		return "the port speaks the native protocol: " + c.change(Native, c.Secure)
	case answer.status == http.StatusNotFound, answer.location != "":
		return "check http_path, host and port"
	case answer.status == http.StatusBadRequest && !c.Secure:
		return "the port may speak TLS: " + c.change(c.Protocol, true)
	case answer.status == http.StatusUnauthorized, answer.status == http.StatusForbidden:
		return "a gateway refused the request"
	case answer.status >= http.StatusInternalServerError:
		return "a gateway cannot reach the server"
	default:
		return "check host, port and http_path"
	}
}
