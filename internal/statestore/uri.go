package statestore

import "github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"

// The connection settings, for callers that import nothing below this package.
type (
	// Connection says where the server is and how to talk to it.
	Connection = chconn.Config
	// Protocol is how to talk to it.
	Protocol = chconn.Protocol
	// TLS says whom to trust, and who we are.
	TLS = chconn.TLS
)

// Protocols lists every protocol.
func Protocols() []Protocol { return chconn.Protocols() }

// FromURI reads the URI of Meltano's state backend, which means HTTP. It fills in what the URI names, and
// the host. Its database and query are left aside, and no error repeats any part of it.
func FromURI(uri string) (Connection, error) { return chconn.FromURI(uri) }
