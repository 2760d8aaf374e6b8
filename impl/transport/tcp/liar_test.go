package tcp

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// byteWire is a wire that reads from memory, at most so much a call.
type byteWire struct {
	rest []byte
	most func() int
}

func (w *byteWire) readv(v []unix.Iovec) (n int, err error) {
	left := w.most()
	for _, x := range v {
		k := copy(bytesOf(x)[:min(int(x.Len), left)], w.rest)
		w.rest = w.rest[k:]
		n += k
		left -= k
		if left == 0 || len(w.rest) == 0 {
			break
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (w *byteWire) writev([]unix.Iovec) (int, error) { return 0, io.ErrClosedPipe }
func (w *byteWire) close()                           {}

// scene is a pool in which lease 1 may fill two whole pages and half of the heads of a third, and lease 2 another page.
type scene struct {
	mem    device.Memory
	grants *transport.Grants
	sink   *targetSink
	before []byte
	tags   []byte
}

func newScene(t testing.TB) *scene {
	l := kvLayout(4, 1, 0, 2, 2, 8) // 1 KiB pages
	s := &scene{mem: memoryOf(t, l), sink: newTargetSink()}
	s.grants = transport.NewGrants(s.mem)
	s.grants.Raise(3)
	s.allow()
	fill(s.mem[spec.KV].Bytes, 1)
	fill(s.mem[spec.KV].Tags, 2)
	s.before, s.tags = bytes.Clone(s.mem[spec.KV].Bytes), bytes.Clone(s.mem[spec.KV].Tags)
	return s
}

func (s *scene) allow() {
	one := spec.Grant{Lease: 1, Digests: true, Parts: []spec.Part{
		{Component: spec.KV, Index: 0, LayerHi: 1, HeadHi: 2, TokenHi: 8}, {Component: spec.KV, Index: 1, LayerHi: 1, HeadHi: 1, TokenLo: 8, TokenHi: 10},
	}}
	one.Pages[spec.KV] = []spec.GrantedPage{{Page: 5, Gen: 50}, {Page: 2, Gen: 20}, {Page: 7, Gen: 70}}
	two := spec.Grant{Lease: 2, Parts: []spec.Part{{Component: spec.KV, Index: 3, LayerHi: 1, HeadHi: 2, TokenHi: 4}}}
	two.Pages[spec.KV] = []spec.GrantedPage{{Page: 4, Gen: 40}}
	s.grants.Allow(one)
	s.grants.Allow(two)
}

// allowed is every byte range, and every slot, that any grant of the scene covers.
func (s *scene) allowed() (bytes [][2]int, slots [][2]int) {
	slot := func(page, part int) [2]int {
		at := (page*4 + part) * spec.TagBytes
		return [2]int{at, at + spec.TagBytes}
	}
	return [][2]int{{5120, 6144}, {2048, 3072}, {4096, 5120}, {7168, 7168 + 128}, {7168 + 512, 7168 + 640}},
		[][2]int{slot(5, 0), slot(2, 0), slot(7, 1), slot(4, 3)}
}

// outside fails if a byte outside of every grant has changed.
func (s *scene) outside(t testing.TB) {
	t.Helper()
	b, g := bytes.Clone(s.mem[spec.KV].Bytes), bytes.Clone(s.mem[spec.KV].Tags)
	ranges, slots := s.allowed()
	for _, r := range ranges {
		copy(b[r[0]:r[1]], s.before[r[0]:r[1]])
	}
	for _, r := range slots {
		copy(g[r[0]:r[1]], s.tags[r[0]:r[1]])
	}
	if !bytes.Equal(b, s.before) || !bytes.Equal(g, s.tags) {
		t.Fatal("a byte landed outside of its grant")
	}
}

// feed runs a receiver over b and returns its error; afterwards no placer is left.
func (s *scene) feed(b []byte, most func() int) error {
	x := &receiver{w: &byteWire{b, most}, epoch: 3, grants: s.grants, sink: s.sink}
	err := x.run()
	if e := s.grants.Wait(4); e != nil {
		return e
	}
	return err
}

func all() int { return 1 << 30 }

func honest() entry {
	return entry{spec.KV, 0, 0, spec.GrantedPage{Page: 5, Gen: 50}, 1024}
}

// Each lie is told between two honest writes: the lie lands nowhere, the honest ones land, the stream stays in step.
func TestReceiver_LyingWrite_LandsNowhereAndStaysInStep(t *testing.T) {
	lies := map[string]struct {
		lease  spec.LeaseID
		change func(*entry)
		want   spec.Refusal
	}{
		"unknown lease":    {77, func(*entry) {}, spec.RefuseUnknownLease},
		"other's lease":    {2, func(*entry) {}, spec.RefuseNotGranted},
		"generation":       {1, func(e *entry) { e.dst.Gen-- }, spec.RefuseNotGranted},
		"page of another":  {1, func(e *entry) { e.dst.Page = 4 }, spec.RefuseNotGranted},
		"page out of pool": {1, func(e *entry) { e.dst.Page = 1 << 31 }, spec.RefuseOutOfRange},
		"part":             {1, func(e *entry) { e.part = 3 }, spec.RefuseNotGranted},
		"part of no slot":  {1, func(e *entry) { e.part = 60000 }, spec.RefuseOutOfRange},
		"component":        {1, func(e *entry) { e.c = 99 }, spec.RefuseOutOfRange},
		"index":            {1, func(e *entry) { e.index = 2 }, spec.RefuseNotGranted},
		"too short":        {1, func(e *entry) { e.bytes = 1 }, spec.RefuseNotGranted},
		"too long":         {1, func(e *entry) { e.bytes = 3 << 20 }, spec.RefuseNotGranted},
	}
	for name, lie := range lies {
		for _, most := range []int{1 << 30, 1000, 7} {
			t.Run(name, func(t *testing.T) {
				s, e := newScene(t), honest()
				lie.change(&e)
				second := entry{spec.KV, 0, 1, spec.GrantedPage{Page: 2, Gen: 20}, 1024}
				good := bytes.Repeat([]byte{0xcc}, 1024)
				tag := spec.Tag{Lease: 1}
				b := appendFrame(nil, 1, []entry{honest()}, [][]byte{good}, []spec.Tag{tag})
				b = appendFrame(b, lie.lease, []entry{e}, [][]byte{bytes.Repeat([]byte{0xdd}, int(e.bytes))}, []spec.Tag{tag})
				b = appendFrame(b, 1, []entry{second}, [][]byte{good}, []spec.Tag{tag})
				b = appendNotice(b, 1, 6)
				require.ErrorIs(t, s.feed(b, func() int { return most }), io.EOF)
				require.Equal(t, 1, s.sink.count(lie.want), "%v", s.sink.refused)
				require.Equal(t, noticeIn{0, 1, 6}, <-s.sink.notice)
				require.Equal(t, good, s.mem[spec.KV].Page(5))
				require.Equal(t, good, s.mem[spec.KV].Page(2))
				require.Equal(t, spec.TagGood, device.CheckTag(s.mem[spec.KV].Slot(5, 0), tag))
				s.outside(t)
			})
		}
	}
}

// Honest and lying writes in one frame, with the second part's cut page.
func TestReceiver_MixedFrame_LandsTheHonestOnes(t *testing.T) {
	s := newScene(t)
	tail := entry{spec.KV, 1, 2, spec.GrantedPage{Page: 7, Gen: 70}, 256}
	es := []entry{{spec.KV, 0, 0, spec.GrantedPage{Page: 6, Gen: 1}, 500}, tail, {spec.KV, 1, 2, spec.GrantedPage{Page: 7, Gen: 70}, 256}, honest()}
	pages := [][]byte{bytes.Repeat([]byte{1}, 500), bytes.Repeat([]byte{2}, 256), bytes.Repeat([]byte{3}, 256), bytes.Repeat([]byte{4}, 1024)}
	b := appendFrame(nil, 1, es, pages, []spec.Tag{{Part: 1}, {Part: 2}, {Part: 3}, {Part: 4}})
	require.ErrorIs(t, s.feed(b, func() int { return 333 }), io.EOF)
	require.Equal(t, 1, s.sink.count(spec.RefuseNotGranted))
	require.Equal(t, 1, s.sink.count(spec.RefuseDuplicate), "twice in one frame")
	require.Equal(t, pages[3], s.mem[spec.KV].Page(5))
	require.Equal(t, pages[1], gather(s.mem[spec.KV].Page(7), []spec.Segment{{Offset: 0, Bytes: 128}, {Offset: 512, Bytes: 128}}))
	require.Equal(t, spec.TagGood, device.CheckTag(s.mem[spec.KV].Slot(7, 1), spec.Tag{Part: 2}))
	s.outside(t)
}

func TestReceiver_CutStream_LeavesNoTagAndNothingDone(t *testing.T) {
	whole := appendFrame(nil, 1, []entry{honest()}, [][]byte{make([]byte, 1024)}, []spec.Tag{{Lease: 1}})
	for cut := 0; cut < len(whole); cut += 1 + cut%7 {
		s := newScene(t)
		require.ErrorIs(t, s.feed(whole[:cut], all), io.EOF)
		require.True(t, bytes.Equal(s.tags, s.mem[spec.KV].Tags), "cut at %d", cut)
		for _, l := range s.grants.Landed(1, []spec.Part{{Component: spec.KV}}) {
			require.NotContains(t, l.Done, true)
		}
		s.outside(t)
	}
}

func TestParseFrame_AnyBrokenRule_IsRefused(t *testing.T) {
	le := binary.LittleEndian
	good := appendFrame(nil, 1, []entry{honest()}, nil, nil)
	breaks := map[string]func(b []byte){
		"magic": func(b []byte) { b[0]++ }, "no writes": func(b []byte) { le.PutUint32(b[4:], 0) }, "too many": func(b []byte) { le.PutUint32(b[4:], maxEntries+1) },
		"huge count": func(b []byte) { le.PutUint32(b[4:], 1<<31) }, "lease 0": func(b []byte) { le.PutUint64(b[8:], 0) },
		"sum": func(b []byte) { b[16]++ }, "reserved": func(b []byte) { b[31] = 1 }, "entry reserved": func(b []byte) { b[33] = 1 },
		"empty write":     func(b []byte) { le.PutUint32(b[44:], 0); le.PutUint64(b[16:], 0) },
		"oversized write": func(b []byte) { le.PutUint32(b[44:], spec.MaxPageBytes+1); le.PutUint64(b[16:], spec.MaxPageBytes+1) },
		"notice of writes": func(b []byte) {
			le.PutUint32(b, magicNotice)
		},
	}
	for name, f := range breaks {
		t.Run(name, func(t *testing.T) {
			s, b := newScene(t), append(bytes.Clone(good), make([]byte, 4096)...)
			f(b)
			require.ErrorIs(t, s.feed(b, all), ErrFrame)
			require.Equal(t, s.before, s.mem[spec.KV].Bytes)
		})
	}
	require.LessOrEqual(t, frameBytes+maxEntries*entryBytes, headBytes)
}

func TestFrame_PutThenParse_IsTheSame(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 200 {
		es := make([]entry, 1+r.Intn(maxEntries))
		sum := uint64(0)
		for i := range es {
			es[i] = entry{spec.Component(r.Intn(256)), spec.PartIndex(r.Uint32()), r.Uint32(), spec.GrantedPage{Page: spec.PageID(r.Uint32()), Gen: spec.Generation(r.Uint64())}, 1 + uint32(r.Intn(spec.MaxPageBytes))}
			sum += uint64(es[i].bytes)
		}
		b := appendFrame(nil, spec.LeaseID(r.Uint64()|1), es, nil, nil)
		f, err := parseFrame(b)
		require.NoError(t, err)
		out := make([]entry, maxEntries)
		require.NoError(t, parseEntries(f, b[frameBytes:], out))
		require.Equal(t, es, out[:f.count])
		require.Equal(t, sum, f.number)
	}
}

// FuzzReceiver feeds any bytes, in reads of any size: nothing lands outside of a grant, nothing crashes, no placer stays.
func FuzzReceiver(f *testing.F) {
	page := bytes.Repeat([]byte{9}, 1024)
	one := appendFrame(nil, 1, []entry{honest()}, [][]byte{page}, []spec.Tag{{Lease: 1}})
	f.Add(one, uint16(0))
	f.Add(appendNotice(appendFrame(one, 1, []entry{{spec.KV, 1, 2, spec.GrantedPage{Page: 7, Gen: 70}, 256}}, [][]byte{page[:256]}, []spec.Tag{{}}), 1, 1), uint16(13))
	f.Add(appendFrame(nil, 2, []entry{honest(), {spec.KV, 3, 0, spec.GrantedPage{Page: 4, Gen: 40}, 1024}}, [][]byte{page, page}, []spec.Tag{{}, {}}), uint16(100))
	f.Add(appendFrame(nil, 1, []entry{{spec.KV, 0, 0, spec.GrantedPage{Page: 5, Gen: 50}, 70000}}, [][]byte{make([]byte, 70000)}, []spec.Tag{{}}), uint16(9000))
	f.Fuzz(func(t *testing.T, b []byte, most uint16) {
		s := newScene(t)
		if err := s.feed(b, func() int { return int(most) + 1 }); err == nil {
			t.Fatal("a receiver ended without an error")
		}
		s.outside(t)
	})
}
