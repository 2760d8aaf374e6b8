package mem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// layout has 8 pages of 64 bytes.
func layout() spec.Layout {
	m := spec.Meaning{ByteOrder: "little", DType: "u8", HeadDim: 4, ElemBytes: 2, KVs: 2, TokensPerPage: 4, Layers: 1, Heads: 1}
	return spec.NewDense(spec.KV, m, 0, 1, 0, 1, 8, 1)
}

const pageSize = 64

func memory(t *testing.T) (m device.Memory) {
	p, err := device.NewPool(layout(), nil, nil)
	require.NoError(t, err)
	m[spec.KV] = p
	return m
}

func link(epoch spec.Epoch) transport.LinkInfo {
	return transport.LinkInfo{Prefill: spec.Incarnation{1}, Decode: spec.Incarnation{2}, Epoch: epoch, Key: [32]byte{3}}
}

// log is what all sinks heard, in order.
type log struct{ lines []string }

func (l *log) say(format string, a ...any) { l.lines = append(l.lines, fmt.Sprintf(format, a...)) }

// take returns what was heard since it was asked last.
func (l *log) take() []string {
	out := l.lines
	l.lines = nil
	return out
}

func word(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

type sourceSink struct{ *log }

func (s sourceSink) Posted(b uint64, err error) { s.say("posted %d %s", b, word(err)) }
func (s sourceSink) Noticed(l spec.LeaseID, c []spec.Channel, err error) {
	s.say("noticed %d %v %s", l, c, word(err))
}
func (s sourceSink) Lost(err error) { s.say("source lost") }
func (s sourceSink) Fenced()        { s.say("source fenced") }

type targetSink struct{ *log }

func (s targetSink) NoticeIn(c uint32, l spec.LeaseID, n uint64) {
	s.say("notice in channel %d lease %d number %d", c, l, n)
}
func (s targetSink) Refused(l spec.LeaseID, why spec.Refusal) { s.say("refused %d %s", l, why) }
func (s targetSink) Lost(err error)                           { s.say("target lost") }
func (s targetSink) Fenced()                                  { s.say("target fenced") }

type readerSink struct{ *log }

func (s readerSink) Copied(r transport.CopyResult) {
	s.say("copied %d bad %v %s", r.Job, r.Bad, word(r.Err))
}
func (s readerSink) Lost(err error) { s.say("reader lost") }
func (s readerSink) Fenced()        { s.say("reader fenced") }

type exportSink struct{ *log }

func (s exportSink) Opened()        { s.say("opened") }
func (s exportSink) ReaderEnded()   { s.say("reader ended") }
func (s exportSink) Lost(err error) { s.say("export lost") }

// rig is one push link.
type rig struct {
	*log
	t        *testing.T
	f        *Fabric
	from, to device.Memory
	grants   *transport.Grants
	src      *Source
	dst      *Target
}

func newRig(t *testing.T, faults Faults, channels uint32) *rig {
	return rigOn(t, New(faults), channels)
}

func rigOn(t *testing.T, f *Fabric, channels uint32) *rig {
	g := &rig{log: &log{}, t: t, f: f, from: memory(t), to: memory(t)}
	g.grants = transport.NewGrants(g.to)
	g.grants.Raise(1)
	var err error
	g.src, err = g.f.OpenSource(link(1), g.from, channels, sourceSink{g.log})
	require.NoError(t, err)
	g.dst, err = g.f.OpenTarget(link(1), g.to, g.grants, targetSink{g.log})
	require.NoError(t, err)
	return g
}

func part(pages uint32) spec.Part {
	return spec.Part{Component: spec.KV, LayerHi: 1, HeadHi: 1, TokenHi: 4 * pages}
}

// lease grants n pages from dst on to a lease and returns the batch that fills them from source pages 0 on.
func (g *rig) lease(id spec.LeaseID, dst spec.PageID, n uint32) transport.Batch {
	m := spec.Grant{Lease: id, Parts: []spec.Part{part(n)}, Digests: true}
	b := transport.Batch{ID: 10 * uint64(id), Lease: id}
	for i := range n {
		page := spec.GrantedPage{Page: dst + spec.PageID(i), Gen: spec.Generation(id)}
		m.Pages[spec.KV] = append(m.Pages[spec.KV], page)
		g.fill(spec.PageID(i), byte(16*byte(id)+byte(i)))
		segs, err := part(n).Segments(layout(), i, nil)
		require.NoError(g.t, err)
		b.Writes = append(b.Writes, transport.Write{Index: i, Src: spec.PageID(i), SrcSegs: segs, Dst: page, Tag: tagOf(id, i)})
	}
	require.True(g.t, g.grants.Allow(m))
	return b
}

func (g *rig) fill(page spec.PageID, v byte) {
	for i := range g.from[spec.KV].Page(page) {
		g.from[spec.KV].Page(page)[i] = v
	}
}

func tagOf(id spec.LeaseID, i uint32) spec.Tag {
	return spec.Tag{Lease: id, Gen: spec.Generation(id), Index: i, Used: pageSize}
}

// find is the only pending operation of a kind that fits.
func find(t *testing.T, f *Fabric, k Kind, fits func(Op) bool) OpRef {
	t.Helper()
	var found []OpRef
	for _, o := range f.Pending() {
		if o.Kind == k && (fits == nil || fits(o)) {
			found = append(found, o.Ref)
		}
	}
	require.Len(t, found, 1, "%s of %v", k, f.Pending())
	return found[0]
}

func (g *rig) write(batch uint64, index int) OpRef {
	return find(g.t, g.f, Write, func(o Op) bool { return o.ID == batch && o.Index == index && !o.Again })
}

func (g *rig) step(r OpRef, all ...Do) {
	g.t.Helper()
	for _, d := range all {
		require.NoError(g.t, g.f.Step(r, d))
	}
}

func (g *rig) heard(lines ...string) {
	g.t.Helper()
	require.Equal(g.t, lines, g.take())
}

func (g *rig) page(p spec.PageID, first, second byte, tag spec.TagState, want spec.Tag) {
	g.t.Helper()
	b := g.to[spec.KV].Page(p)
	for i := range b {
		v := first
		if i >= pageSize/2 {
			v = second
		}
		require.Equal(g.t, v, b[i], "page %d byte %d", p, i)
	}
	require.Equal(g.t, tag, device.CheckTag(g.to[spec.KV].Slot(p, 0), want))
}
