package verbs

import (
	"errors"
	"fmt"

	"kvfence/impl/transport/tcp"
)

// Sentinels of Open and of a link's opening.
var (
	// ErrNotBuilt says that this binary was built without verbs.
	ErrNotBuilt = errors.New("this build has no RDMA verbs: use kvfence-native, or build with the tag verbs")
	// ErrNoLibrary says that libibverbs could not be opened.
	ErrNoLibrary = errors.New("libibverbs cannot be used")
	// ErrNoDevice says that a device, port or GID is not there or not up.
	ErrNoDevice = errors.New("no usable RDMA device")
	// ErrMemlock says that the limit of locked memory is below what the pools need.
	ErrMemlock = errors.New("the limit of locked memory is too small")
	// ErrOptions is wrapped by options out of bounds.
	ErrOptions = errors.New("verbs transport options")
	// ErrMismatch is wrapped when the two ends of a link cannot work together; the text names the field and both values.
	ErrMismatch = errors.New("the ends of the link differ")
	// ErrFence is wrapped by a fence that could not be completed.
	ErrFence = errors.New("fence failed")
)

// MaxRails is the most rails of one node: a channel is a rail, and a bit of a mask.
const MaxRails = 8

// Rail is one port of one device, and the address used on it.
type Rail struct {
	Device string
	Port   uint8
	// GID is the index in the port's table; GIDAuto takes RoCE v2 over IPv4, else RoCE v2, else the first.
	GID int
}

// GIDAuto is Rail.GID for the best one.
const GIDAuto = -1

// Leases is what enforces a lease at decode's adapter.
type Leases string

// The choices of Leases. Auto takes windows where every rail's device has type 2B and, tried at start, holds their bounds; else regions.
const (
	LeasesAuto Leases = "auto"
	// LeasesWindows binds memory windows of type 2B to the link's queue pairs, a request of the adapter each.
	LeasesWindows Leases = "windows"
	// LeasesRegions registers each lease's pages anew, a call of the driver each; the locked memory counts twice. They stand in a protection domain of their link's.
	LeasesRegions Leases = "regions"
	// LeasesOff opens the whole pool to every link: the adapter enforces epochs, and leases rest on the writer. A node does not offer it: one bad page
	// would stay in quarantine until every link that holds the key had been fenced.
	LeasesOff Leases = "off"
)

// step names a step of a fence.
type step string

// Options of one node's adapter. Zero values are defaults, but Rails, which has none.
type Options struct {
	Rails []Rail
	// Target says that peers write into this memory (decode). A source's memory is never open to a peer.
	Target bool
	// Leases is decode's choice; "" is LeasesAuto. LeasesWindows refuses devices that have none, or none that hold.
	Leases Leases
	// unprobed takes a device's word for its windows; for tests of their life on devices that do not hold their bounds.
	unprobed bool
	// onStep, where it is set, is called in place of each step of a fence, which is do; for tests of fences that cannot be completed, and of the order.
	onStep func(s step, do func() error) error
	// MTU is the path MTU in bytes on all rails; 0: each port's own. Both ends of a rail must have the same.
	MTU int
	// RetryCount is how often a request without answer is sent again before the queue pair fails; 0 means 6. (7 is for ever on some
	// devices.) Timeout is the exponent of the time between, 4.096 us * 2^n; 0 means 14, which is 67 ms. So a dead peer is seen in about half a second.
	RetryCount, Timeout int
	// RNRRetry is how often a notice is sent again that finds no receive posted; 0 means 7, which is for ever: a live peer that is slow is no failure.
	RNRRetry int
	// SendDepth is the requests that one queue pair holds posted; 0 means 512. NoticeDepth is the receives that wait for notices; 0 means 128.
	SendDepth, NoticeDepth int
	// BusyPoll looks for completions without sleeping; a core for each rail of each link.
	BusyPoll bool
	// MaxQueued bounds the writes that a source holds unsent; 0 means 1<<18.
	MaxQueued int
	// Stream are the options of the streams that open links.
	Stream tcp.Options
}

// Bounds of depths: a completion queue must hold all that can be posted.
const (
	minDepth = 16
	maxDepth = 16384
)

func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		at    *int
		value int
	}{{&o.RetryCount, 6}, {&o.Timeout, 14}, {&o.RNRRetry, 7}, {&o.SendDepth, 512}, {&o.NoticeDepth, 128}, {&o.MaxQueued, 1 << 18}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if o.Leases == "" {
		o.Leases = LeasesAuto
	}
	bad := func(what string, v any) error { return fmt.Errorf("%w: %s = %v", ErrOptions, what, v) }
	switch {
	case len(o.Rails) == 0 || len(o.Rails) > MaxRails:
		return o, fmt.Errorf("%w: %d rails, 1 to %d", ErrOptions, len(o.Rails), MaxRails)
	case o.Leases != LeasesAuto && o.Leases != LeasesWindows && o.Leases != LeasesRegions && o.Leases != LeasesOff:
		return o, bad("leases", o.Leases)
	case o.MTU != 0 && mtuCode(o.MTU) == 0:
		return o, bad("mtu", o.MTU)
	case o.RetryCount < 1 || o.RetryCount > 7:
		return o, bad("retry count", o.RetryCount)
	case o.Timeout < 1 || o.Timeout > 31:
		return o, bad("timeout", o.Timeout)
	case o.RNRRetry < 1 || o.RNRRetry > 7:
		return o, bad("rnr retry", o.RNRRetry)
	case o.SendDepth < minDepth || o.SendDepth > maxDepth:
		return o, bad("send depth", o.SendDepth)
	case o.NoticeDepth < minDepth || o.NoticeDepth > maxDepth:
		return o, bad("notice depth", o.NoticeDepth)
	case o.MaxQueued < 1:
		return o, bad("queued writes", o.MaxQueued)
	}
	seen := map[Rail]bool{}
	for _, r := range o.Rails {
		key := Rail{Device: r.Device, Port: r.Port}
		if r.Device == "" || r.Port == 0 || r.GID < GIDAuto || r.GID > 255 || seen[key] {
			return o, bad("rail", fmt.Sprintf("%s port %d GID %d", r.Device, r.Port, r.GID))
		}
		seen[key] = true
	}
	return o, nil
}

// mtuCode is the verbs' number of an MTU in bytes, 0 for none; mtuBytes is its inverse.
func mtuCode(bytes int) uint32 {
	for code := uint32(1); code <= 5; code++ {
		if mtuBytes(code) == bytes {
			return code
		}
	}
	return 0
}

func mtuBytes(code uint32) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}

// Stats is what one adapter has done. Bytes are page bytes; Requests are work requests, of which Signalled completed one by one.
type Stats struct {
	Writes, Requests, Signalled, Notices, Bytes uint64
	// Opened and TakenBack are windows or regions of leases.
	Opened, TakenBack uint64
	Fences            uint64
	// Wakes are looks that a fence took without an event of the driver, and Reminders the further markers that it posted: soft RoCE forgets both.
	Wakes, Reminders uint64
	// Kept are queue pairs that stand in error until their peer says that its end is shut.
	Kept int
}
