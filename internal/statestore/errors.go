package statestore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// ErrNotFound is returned for an entry that is absent or tombstoned. A *NoTableError is one, too.
var ErrNotFound = errors.New("not found")

// Errors of the layers below that callers tell apart; the provider imports nothing below this package.
type (
	// BusyError says who holds the lock that a write waited for.
	BusyError = lock.BusyError
	// LostError says that a lock was lost while it was held; nothing is written under it any more.
	LostError = lock.LostError
	// ConnectError says that the server could not be reached, or did not accept the user.
	ConnectError = chconn.ConnectError
	// ServerError is an exception of the server.
	ServerError = chconn.ServerError
	// ReleaseError says that a claim may be left behind, and until when.
	ReleaseError = lock.ReleaseError
	// NoAnswerError says that a statement may have run, but its answer did not arrive.
	NoAnswerError = chconn.NoAnswerError
)

// MissingGrant returns the GRANT statement that the server's refusal asks for.
func MissingGrant(err error) (grant string, ok bool) { return chconn.MissingGrant(err) }

// A NoTableError is a table or a database that does not exist.
type NoTableError struct {
	Database, Table string
	// Missing is "database" or "table".
	Missing string
}

func (e *NoTableError) Error() string {
	if e.Missing == "database" {
		return fmt.Sprintf("database %s does not exist", e.Database)
	}
	return fmt.Sprintf("table %s/%s does not exist", e.Database, e.Table)
}

// Is makes a missing table count as ErrNotFound: nothing can be in it.
func (e *NoTableError) Is(target error) bool { return target == ErrNotFound }

// An ExistsError is a create over a live entry.
type ExistsError struct {
	Address Address
	// Version is the version of the live entry.
	Version uint64
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("entry %s already exists (version %d)", e.Address, e.Version)
}

// A MovedError is an update or delete of an entry whose stored version is not the expected one.
type MovedError struct {
	Address Address
	// Planned is the version that the caller had read.
	Planned uint64
	// Found is the version that is stored; with Gone, that of the tombstone, or zero for no row at all.
	Found uint64
	// Gone says that no live entry is there any more.
	Gone bool
}

func (e *MovedError) Error() string {
	if e.Gone {
		return fmt.Sprintf("entry %s was deleted since it was planned (planned version %d)", e.Address, e.Planned)
	}
	return fmt.Sprintf("entry %s changed since it was planned (planned version %d, found %d)", e.Address, e.Planned, e.Found)
}

// An UncertainError is a write that was sent, and of which nobody can say that it is what is stored now.
type UncertainError struct {
	Address Address
	// Stamp is the version that the write carried.
	Stamp uint64
	// Removed says that it was a delete that leaves no version.
	Removed bool
	// Stored is the newest version that was read afterwards; zero if that could not be read either, or if there
	// is none.
	Stored uint64
	// Err is what happened to the write or to its verification.
	Err error
}

func (e *UncertainError) Error() string {
	if e.Removed {
		return fmt.Sprintf("entry %s: the delete was sent, and version %d was read afterwards (0 is none, or not readable): %v", e.Address, e.Stored, e.Err)
	}
	switch e.Stored {
	case 0:
		return fmt.Sprintf("entry %s: written as version %d, and what is stored now could not be read: %v", e.Address, e.Stamp, e.Err)
	case e.Stamp:
		return fmt.Sprintf("entry %s: stored as version %d, but not under a lock that held throughout: %v", e.Address, e.Stamp, e.Err)
	}
	return fmt.Sprintf("entry %s: written as version %d, but version %d is stored now: %v", e.Address, e.Stamp, e.Stored, e.Err)
}

func (e *UncertainError) Unwrap() error { return e.Err }

// An UnfitError is a table that this package cannot keep state in.
type UnfitError struct {
	Database, Table string
	// Reasons are all the things that do not fit, each with what would fix it.
	Reasons []string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("table %s/%s does not hold pipeline state in a layout that is supported: %d reason(s), first: %s",
		e.Database, e.Table, len(e.Reasons), e.Reasons[0])
}

// A TableExistsError is a create over a table that is there already and not just as declared and empty.
type TableExistsError struct {
	Database, Table string
}

func (e *TableExistsError) Error() string {
	return fmt.Sprintf("table %s/%s already exists", e.Database, e.Table)
}

// A TableReplacedError is a change of a table while another one has its name.
type TableReplacedError struct {
	// Table is the one that was meant.
	Table TableIdentity
	// Found is the UUID of the one that is there.
	Found string
}

func (e *TableReplacedError) Error() string {
	return fmt.Sprintf("table %s/%s is another one now: its UUID is %s, not %s", e.Table.Database, e.Table.Name, e.Found, e.Table.UUID)
}

// A TableBusyError is a change that has to wait until nobody holds a lock of the table.
type TableBusyError struct {
	Database, Table string
	// Claims are the live ones, at least one.
	Claims []Claim
}

func (e *TableBusyError) Error() string {
	return fmt.Sprintf("table %s/%s is in use: %d lock(s) are held, the first of state_id %q by lock_id %s",
		e.Database, e.Table, len(e.Claims), e.Claims[0].StateID, e.Claims[0].LockID)
}

// A NoMergeError says that the server does not merge the parts of a table now.
type NoMergeError struct {
	Database, Table string
	Err             error
}

func (e *NoMergeError) Error() string {
	return fmt.Sprintf("the parts of table %s/%s were not merged: %v", e.Database, e.Table, e.Err)
}

func (e *NoMergeError) Unwrap() error { return e.Err }

// A NoCleanupError says why tombstones of a table may not be removed.
type NoCleanupError struct {
	Database, Table string
	// Layout is the table's. Only versioned ones have tombstones.
	Layout Layout
	// Setting is the MergeTree setting that is missing, if the layout is right.
	Setting string
}

func (e *NoCleanupError) Error() string {
	if e.Layout != LayoutVersioned {
		return fmt.Sprintf("table %s/%s has the layout %s, which has no tombstones", e.Database, e.Table, e.Layout)
	}
	return fmt.Sprintf("table %s/%s does not have the setting %s = 1", e.Database, e.Table, e.Setting)
}

// A ClusterError is a change of tables that not all hosts of a cluster have made.
type ClusterError struct {
	Cluster string
	// Unfinished are the hosts that have not answered in time; they may still make it.
	Unfinished []string
	// Failed are those that have refused, each with its message.
	Failed []string
}

func (e *ClusterError) Error() string {
	return fmt.Sprintf("cluster %s: not finished in time on %d host(s) %s; failed on %d host(s) %s",
		e.Cluster, len(e.Unfinished), strings.Join(e.Unfinished, ", "), len(e.Failed), strings.Join(e.Failed, "; "))
}

// A CannotUpgradeError is a change of layout that is not made.
type CannotUpgradeError struct {
	Database, Table string
	// Reasons are all the reasons, each with what to do about it.
	Reasons []string
}

func (e *CannotUpgradeError) Error() string {
	return fmt.Sprintf("the layout of table %s/%s is not changed: %d reason(s), first: %s", e.Database, e.Table, len(e.Reasons), e.Reasons[0])
}
