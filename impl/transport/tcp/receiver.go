package tcp

import (
	"errors"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

const (
	discardBytes = 64 << 10
	// hashBytes is what is read at once of pages that are hashed: with the kernel's buffers beside it it still is in the
	// second-level cache when it is hashed. A multiple of device.DigestChunk.
	hashBytes = 256 << 10
)

// receiver is the reading end of one stream: it parses frames and puts bytes into pages, the only place of this package that
// does. All its memory is fixed; nothing is sized by the peer. One goroutine.
type receiver struct {
	w       wire
	epoch   spec.Epoch
	channel uint32
	grants  *transport.Grants
	sink    transport.TargetSink

	buf  [headBytes]byte // read ahead of need: buf[r:n]
	r, n int

	entries [maxEntries]entry
	places  [maxEntries]placed
	begun   int // entries of the frame that have been put to the grant table
	tags    [maxEntries * spec.TagBytes]byte
	discard [discardBytes]byte

	stagers [spec.ComponentCount]*stager // of pools that the host cannot address

	iov    []unix.Iovec
	need   int // bytes of iov that belong to the frame
	pieces []piece
	dig    device.Digester
}

// placed is the grant table's answer to one entry.
type placed struct {
	p  transport.Placement
	ok bool
	// staged bytes are read into a lane's memory, and land from there.
	staged bool
	whole  [1]spec.Segment
	// digest is of the bytes that landed, once all have.
	digest uint64
}

// piece is a run of page bytes to hash once it has been read.
type piece struct {
	at          int // entry
	b           []byte
	first, last bool
}

// run receives frames until the stream ends; it never returns nil. No placement is open when it has returned.
func (x *receiver) run() error {
	defer x.closeStagers()
	for {
		if err := x.frame(); err != nil {
			return err
		}
	}
}

// fill makes at least k unread bytes stand in buf; k is at most headBytes.
func (x *receiver) fill(k int) error {
	if x.n-x.r >= k {
		return nil
	}
	copy(x.buf[:], x.buf[x.r:x.n])
	x.n -= x.r
	x.r = 0
	x.iov = append(x.iov[:0], iov(x.buf[x.n:]))
	got, err := readAtLeast(x.w, x.iov, k-x.n)
	x.n += got
	return err
}

// take moves read-ahead bytes into b and returns how many.
func (x *receiver) take(b []byte) int {
	k := copy(b, x.buf[x.r:x.n])
	x.r += k
	return k
}

func (x *receiver) frame() error {
	if err := x.fill(frameBytes); err != nil {
		return err
	}
	f, err := parseFrame(x.buf[x.r:x.n])
	if err != nil {
		return err
	}
	x.r += frameBytes
	if f.notice {
		x.sink.NoticeIn(x.channel, f.lease, f.number)
		return nil
	}
	if err := x.fill(f.count * entryBytes); err != nil {
		return err
	}
	if err := parseEntries(f, x.buf[x.r:x.n], x.entries[:]); err != nil {
		return err
	}
	x.r += f.count * entryBytes
	x.begun = 0
	err = x.body(f)
	err = x.settle(err)
	lost := errors.Is(err, device.ErrLost)
	for i := range x.begun {
		pl := &x.places[i]
		switch {
		case !pl.ok:
			continue
		case pl.staged && lost: // it may still land: it counts as being placed for ever
		default:
			if err == nil && !pl.staged {
				copy(pl.p.Slot, x.tags[i*spec.TagBytes:][:spec.TagBytes])
			}
			x.grants.End(pl.p, err == nil, pl.digest)
		}
		pl.p = transport.Placement{}
	}
	if lost {
		x.grants.Fail(err)
	}
	return err
}

// body reads the bytes and tags of a frame. Each round makes one list of at most callBytes, asks the grant table about each
// page that begins in it, and reads the list.
func (x *receiver) body(f frame) error {
	var c cursor
	for c.entry < f.count {
		x.iov, x.pieces, x.need = x.iov[:0], x.pieces[:0], 0
		var full *stager
		for n, most := 0, callBytes; n < most && len(x.iov) < callIovs-2 && c.entry < f.count; {
			if c.seg == 0 && c.off == 0 {
				var err error
				if full, err = x.begin(f.lease, c.entry); err != nil {
					return err
				}
				if full != nil {
					break
				}
			}
			n += x.next(&c, min(most-n, hashBytes))
			if len(x.pieces) > 0 {
				most = hashBytes
			}
		}
		if c.entry == f.count { // the last round takes the tags along, and what follows them if it is there
			x.into(x.tags[:f.count*spec.TagBytes])
			if x.need > 0 {
				x.r, x.n = 0, 0
				x.iov = append(x.iov, iov(x.buf[:]))
			}
		}
		got, err := readAtLeast(x.w, x.iov, x.need)
		if err != nil {
			return err
		}
		if over := got - x.need; over > 0 {
			x.n = over
		}
		x.hash()
		if full != nil { // all that it holds has been read
			if err := full.push(x.places[:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// cursor is a place in a frame's bytes: an entry, a segment of it, and bytes of that.
type cursor struct {
	entry, seg int
	off        uint32
}

// next adds the next run of bytes, at most room, to the list, and moves the cursor behind it.
func (x *receiver) next(c *cursor, room int) int {
	e := &x.entries[c.entry]
	first := c.seg == 0 && c.off == 0
	pl := &x.places[c.entry]
	if !pl.ok {
		k := min(room, discardBytes, int(e.bytes-c.off))
		x.into(x.discard[:k])
		if c.off += uint32(k); c.off == e.bytes {
			*c = cursor{entry: c.entry + 1}
		}
		return k
	}
	s := pl.p.Segs[c.seg]
	k := min(room, int(s.Bytes-c.off))
	b := pl.p.Page[s.Offset+c.off:][:k]
	x.into(b)
	at := c.entry
	if c.off += uint32(k); c.off == s.Bytes {
		c.off = 0
		if c.seg++; c.seg == len(pl.p.Segs) {
			*c = cursor{entry: at + 1}
		}
	}
	if pl.p.Digest && !pl.staged {
		x.pieces = append(x.pieces, piece{at, b, first, c.entry > at})
	}
	return k
}

// begin asks the grant table about an entry, once. It returns the stager that has no room for it now.
func (x *receiver) begin(lease spec.LeaseID, i int) (full *stager, err error) {
	e, pl := &x.entries[i], &x.places[i]
	if x.begun == i {
		p, why := x.grants.Begin(x.epoch, lease, e.c, e.part, e.index, e.dst, e.bytes)
		*pl = placed{p: p, ok: why == "", staged: why == "" && p.Page == nil}
		x.begun = i + 1
		if why != "" {
			x.sink.Refused(lease, why)
		}
	}
	if !pl.staged || pl.p.Page != nil {
		return nil, nil
	}
	s, err := x.stager(e.c, pl.p.Pool)
	if err != nil {
		return nil, err
	}
	if pl.p.Page = s.take(i, pl.p); pl.p.Page == nil {
		return s, nil
	}
	pl.whole[0] = spec.Segment{Bytes: e.bytes}
	pl.p.Segs = pl.whole[:]
	return nil, nil
}

// into adds b to the list, less what was read ahead.
func (x *receiver) into(b []byte) {
	if b = b[x.take(b):]; len(b) > 0 {
		x.iov = append(x.iov, iov(b))
		x.need += len(b)
	}
}

// hash takes the pages that the list has filled, while they are in the cache.
func (x *receiver) hash() {
	for _, p := range x.pieces {
		if p.first {
			x.dig.Start(x.places[p.at].p.Header)
		}
		x.dig.Write(p.b)
		if p.last {
			x.places[p.at].digest = x.dig.Sum()
		}
	}
}
