package model

// How many actors a state has room for.
const (
	MaxOurs  = 3
	MaxPeers = 2
)

// A place is where in the protocol one of ours is.
type place uint8

const (
	idle     place = iota // wants to write; has no claim
	claiming              // its claim's guard has passed, its row has not landed
	placed                // its claim is acknowledged
	polling               // has read the claims and seen a larger one: keeps its claim and reads again
	inside                // holds
	ready                 // holds, has read the newest version and chosen a stamp
	writing               // its fence has passed, its row has not landed
	written               // its row is acknowledged
	leaving               // is about to delete its claim
	done                  // its update was acknowledged and verified, its claim is deleted
	dead                  // crashed
)

// A seat is where in its protocol a peer is.
type seat uint8

const (
	looking     seat = iota // reads the holder
	sweeping                // has seen one: deletes stale claims
	entering                // has seen none: inserts its claim
	settling                // waits, then reads all claims
	holding                 // holds
	loaded                  // holds and has read the bookmark
	through                 // holds still, and is about to delete its claim
	withdrawing             // did not get the lock, and is about to delete its claim
	gone                    // crashed
)

// An age is all that matters of how old a claim is.
type age uint8

const (
	fresh age = iota // younger than nine tenths of the lease
	aging            // older than that, but not stale
	stale            // older than 300 s: everybody ignores it
)

// A set holds actors of ours, one bit each.
type set uint8

func (s set) has(i int) bool { return s&(1<<i) != 0 }

// A claim is the newest row that an actor put in the lock table. Its age goes on to count for the one who
// believes in it when the row is gone.
type claim struct {
	age age
	// rank orders the rows by locked_at, the oldest first. 0: the row is not there.
	rank uint8
	// during are those of ours whose statement under way began before this row landed, or began to age.
	during set
}

func (c claim) there() bool { return c.rank != 0 }

func (c claim) live() bool { return c.there() && c.age != stale }

// An owner is an actor of ours.
type owner struct {
	at    place
	claim claim
	// renewing: a renewal's guard has passed, its row has not landed.
	renewing bool
	// acked: its update was reported as written.
	acked bool
	// current: the newest version is still the one that it has read.
	current bool
	// base are the updates within the version that it has read, if that is not the current one.
	base set
	// stamp is the rank of the version that it writes.
	stamp uint8
}

// holds tells whether it believes that it holds.
func (o *owner) holds() bool { return o.at >= inside && o.at <= written }

// holdsOrPolls tells whether it has a claim that it wants to keep.
func (o *owner) holdsOrPolls() bool { return o.holds() || o.at == polling }

// inFlight tells whether a statement of it has checked and not yet written.
func (o *owner) inFlight() bool { return o.at == claiming || o.at == writing || o.renewing }

// named tells whether it has a lock_id that others may meet.
func (o *owner) named() bool {
	return o.at >= claiming && o.at <= leaving || o.claim.there() || o.renewing
}

// A peer is a Meltano client.
type peer struct {
	at    seat
	claim claim
	// base are the updates within the version that it has read.
	base set
}

func (p *peer) holds() bool { return p.at >= holding && p.at <= through }

// A state is everything there is at one moment. Its owners stand in the order of their lock_ids, those
// without one last, so that states that differ only in who is who are the same.
type state struct {
	ours  [MaxOurs]owner
	peers [MaxPeers]peer
	// contents are the updates within the newest version: its own and those of all versions that it was
	// made from. top is its rank among the stamps.
	contents set
	top      uint8
}

// A key is a state in few bits: its owners in the first word, all else in the second.
type key [2]uint64

// A coder writes fields into a word, or reads them out. One walk over the fields serves both, so that they
// cannot disagree.
type coder struct {
	word    uint64
	pos     uint
	reading bool
}

func number[T ~uint8](c *coder, field *T, bits uint) {
	if c.reading {
		*field = T(c.word >> c.pos & (1<<bits - 1))
	} else {
		c.word |= uint64(*field) << c.pos
	}
	c.pos += bits
}

func boolean(c *coder, field *bool) {
	if c.reading {
		*field = c.word>>c.pos&1 == 1
	} else if *field {
		c.word |= 1 << c.pos
	}
	c.pos++
}

func (c *coder) claim(k *claim) {
	number(c, &k.age, 2)
	number(c, &k.rank, 3)
	number(c, &k.during, MaxOurs)
}

func (c *coder) owners(s *state, v *Variant) {
	for i := range v.Ours {
		o := &s.ours[i]
		number(c, &o.at, 4)
		c.claim(&o.claim)
		boolean(c, &o.renewing)
		boolean(c, &o.acked)
		boolean(c, &o.current)
		number(c, &o.base, MaxOurs)
		number(c, &o.stamp, 3)
	}
}

func (c *coder) rest(s *state, v *Variant) {
	for i := range v.Peers {
		p := &s.peers[i]
		number(c, &p.at, 4)
		c.claim(&p.claim)
		number(c, &p.base, MaxOurs)
	}
	number(c, &s.contents, MaxOurs)
	number(c, &s.top, 3)
}

func (s *state) pack(v *Variant) key {
	var owners, rest coder
	owners.owners(s, v)
	rest.rest(s, v)
	return key{owners.word, rest.word}
}

func (k key) unpack(v *Variant) (s state) {
	owners, rest := coder{word: k[0], reading: true}, coder{word: k[1], reading: true}
	owners.owners(&s, v)
	rest.rest(&s, v)
	return s
}
