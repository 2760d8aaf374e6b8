package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// listed are the errors that a parse may answer with, and no other.
var listed = []error{ErrTruncated, ErrTrailing, ErrMagic, ErrVersion, ErrOversize, ErrChecksum, ErrUnknownKind, ErrRange}

func requireListed(t require.TestingT, err error) {
	n := 0
	for _, s := range listed {
		if errors.Is(err, s) {
			n++
		}
	}
	require.Equal(t, 1, n, "%v wraps %d of the listed errors", err, n)
}

// resum makes the checksum right again after a change, so that the change itself is judged.
func resum(b []byte) []byte {
	if len(b) >= HeaderBytes {
		n := uint32(len(b) - HeaderBytes)
		b[8], b[9], b[10], b[11] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
		s := checksum(b[:checksumAt], b[HeaderBytes:])
		b[60], b[61], b[62], b[63] = byte(s), byte(s>>8), byte(s>>16), byte(s>>24)
	}
	return b
}

func encode(t require.TestingT, m Message) []byte {
	b, err := AppendEnvelope(nil, sampleEnvelope(m))
	require.NoError(t, err)
	return b
}

func TestEnvelope_EachKind_RoundTrips(t *testing.T) {
	bodies := sampleBodies()
	require.Len(t, bodies, int(KindEnd)-1)
	for i, m := range bodies {
		require.Equal(t, Kind(i+1), m.Kind())
		b, err := AppendEnvelope([]byte("before"), sampleEnvelope(m))
		require.NoError(t, err, m.Kind())
		require.Equal(t, "before", string(b[:6]))
		e, err := ParseEnvelope(b[6:])
		require.NoError(t, err, m.Kind())
		require.Equal(t, sampleEnvelope(m), e)
	}
}

func TestEnvelope_EveryPrefix_IsTruncated(t *testing.T) {
	for _, m := range sampleBodies() {
		b := encode(t, m)
		for n := range b {
			_, err := ParseEnvelope(b[:n])
			require.ErrorIs(t, err, ErrTruncated, "%s cut at %d", m.Kind(), n)
			if n < HeaderBytes {
				continue
			}
			_, err = ParseEnvelope(resum(bytes.Clone(b[:n]))) // the header names the shorter body: a field is cut
			requireListed(t, err)
			require.True(t, errors.Is(err, ErrTruncated) || errors.Is(err, ErrRange), "%s cut at %d: %v", m.Kind(), n, err)
		}
	}
}

func TestEnvelope_TrailingByte_IsRefused(t *testing.T) {
	for _, m := range sampleBodies() {
		b := append(encode(t, m), 0)
		_, err := ParseEnvelope(b)
		require.ErrorIs(t, err, ErrTrailing)
		_, err = ParseEnvelope(resum(b))
		require.ErrorIs(t, err, ErrTrailing)
	}
}

func TestEnvelope_EveryFlippedBit_IsRefused(t *testing.T) {
	for _, m := range sampleBodies() {
		b := encode(t, m)
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			_, err := ParseEnvelope(b)
			requireListed(t, err)
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

// Changed bytes with a right checksum parse to a message that appends to the same bytes, or end in a listed error.
func TestEnvelope_AnyBytes_SameBytesOrListedError(t *testing.T) {
	bodies := sampleBodies()
	rapid.Check(t, func(t *rapid.T) {
		b := encode(t, rapid.SampledFrom(bodies).Draw(t, "message"))
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			b[at] = rapid.Byte().Draw(t, "byte")
		}
		if rapid.Bool().Draw(t, "cut") {
			b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		}
		requireSameOrListed(t, resum(b))
	})
}

func requireSameOrListed(t require.TestingT, b []byte) {
	e, err := ParseEnvelope(b)
	if err != nil {
		requireListed(t, err)
		return
	}
	again, err := AppendEnvelope(nil, e)
	require.NoError(t, err)
	require.Equal(t, b, again)
}

func TestEnvelope_UnknownKind_NamesKindAndHeader(t *testing.T) {
	b := encode(t, Ping{1})
	b[6], b[7] = 0x34, 0x12
	e, err := ParseEnvelope(resum(b))
	var k *KindError
	require.ErrorAs(t, err, &k)
	require.ErrorIs(t, err, ErrUnknownKind)
	require.Equal(t, Kind(0x1234), k.Kind)
	require.Equal(t, sampleDecode, e.From)
	require.Equal(t, Epoch(6), e.Epoch)
}

// An unknown kind is answered with an error and the stream lives: the next message is read.
func TestCaseB38_UnknownKind_IsAnswerableAndTheStreamLives(t *testing.T) {
	b := encode(t, Ping{1})
	b[6] = 0xee
	r := bytes.NewReader(append(resum(b), encode(t, Ping{2})...))
	e, scratch, err := ReadEnvelope(r, nil)
	var k *KindError
	require.ErrorAs(t, err, &k)
	answer, err := AppendEnvelope(nil, Envelope{Header{From: samplePrefill, To: e.From, Epoch: e.Epoch}, Refused{About: k.Kind, Refusal: RefuseUnknownKind}})
	require.NoError(t, err)
	got, err := ParseEnvelope(answer)
	require.NoError(t, err)
	require.Equal(t, Refused{About: k.Kind, Refusal: RefuseUnknownKind}, got.Body)
	e, _, err = ReadEnvelope(r, scratch)
	require.NoError(t, err)
	require.Equal(t, Ping{2}, e.Body)
}

func TestEnvelope_OtherVersion_NamesBoth(t *testing.T) {
	b := encode(t, Ping{1})
	b[4] = 9
	_, err := ParseEnvelope(resum(b))
	var v *VersionError
	require.ErrorAs(t, err, &v)
	require.Equal(t, uint16(9), v.Theirs)
	require.EqualError(t, err, "another protocol version: ours 1, theirs 9")
}

func TestEnvelope_Refused_NamesField(t *testing.T) {
	base := sampleBodies()
	grant, ask, connect := base[KindGrant-1].(Grant), base[KindAsk-1].(Ask), base[KindConnect-1].(Connect)
	complete := base[KindComplete-1].(Complete)
	edit := func(f func(g *Grant)) Message {
		g := grant
		g.Parts = append([]Part(nil), grant.Parts...)
		f(&g)
		return g
	}
	for name, m := range map[string]Message{
		"grant.lease":              edit(func(g *Grant) { g.Lease = 0 }),
		"grant.transfer.counter":   edit(func(g *Grant) { g.Transfer.Counter = 0 }),
		"grant.transfer.leader":    edit(func(g *Grant) { g.Transfer.Leader = Incarnation{} }),
		"grant.tokens":             edit(func(g *Grant) { g.Tokens = MaxPrompt + 1 }),
		"grant.parts[1].component": edit(func(g *Grant) { g.Parts[1].Component = ComponentCount }),
		"grant.parts[2].index":     edit(func(g *Grant) { g.Parts[2].Index = PartLocal }),
		"grant.parts[0].layer_hi":  edit(func(g *Grant) { g.Parts[0].LayerLo = 2 }),
		"grant.parts[0].head_hi":   edit(func(g *Grant) { g.Parts[0].HeadLo = 3 }),
		"grant.parts[1].token_hi":  edit(func(g *Grant) { g.Parts[1].TokenHi = 41 }),
		"grant.parts":              edit(func(g *Grant) { g.Parts[1].Index = 0 }),
		"ask.sampling.temperature": func() Message { a := ask; a.Sampling.Temperature = float32(math.NaN()); return a }(),
		"ask.sampling.top_p":       func() Message { a := ask; a.Sampling.TopP = 1.01; return a }(),
		"ask.source":               func() Message { a := ask; a.Source.Counter = 0; return a }(),
		"ask.links[0].incarnation": func() Message { a := ask; a.Links = []Incarnation{{}}; return a }(),
		"ask.links":                func() Message { a := ask; a.Links = []Incarnation{{1}, {2}, {1}}; return a }(),
		"ask.tenant.len":           func() Message { a := ask; a.Tenant = strings.Repeat("t", MaxLabel+1); return a }(),
		"connect.capabilities":     func() Message { c := connect; c.Capabilities = []string{"b", "a"}; return c }(),
		"connect.epoch":            func() Message { c := connect; c.Epoch = 0; return c }(),
		"connect.identity.role":    func() Message { c := connect; c.Identity.Role = "both"; return c }(),
		"connect.identity.side":    func() Message { c := connect; c.Identity.Size = 3; return c }(),
		"connect.identity.rank":    func() Message { c := connect; c.Identity.Rank = 0; return c }(),
		"connect.layouts":          func() Message { c := connect; c.Layouts = append(sampleLayouts(), sampleLayouts()[0]); return c }(),
		"complete.channels":        func() Message { c := complete; c.Channels = []Channel{{1, 1}, {1, 2}}; return c }(),
		"complete.parts[1].source": func() Message { c := complete; c.Parts = sampleDone(); c.Parts[1].Digests = []uint64{1, 2}; return c }(),
		"ask_failed.cause":         AskFailed{Transfer: sampleName, Cause: "because"},
		"abort.cause":              Abort{Transfer: sampleName, Lease: 1},
		"refused.refusal":          Refused{About: KindGrant},
		"drop.source":              Drop{Cause: CauseTooLong},
		"drop.transfer":            Drop{Transfer: TransferID{Counter: 1}, Cause: CauseTooLong},
	} {
		b, err := AppendEnvelope([]byte("x"), sampleEnvelope(m))
		var f *FieldError
		require.ErrorAs(t, err, &f, name)
		require.ErrorIs(t, err, ErrRange)
		require.Equal(t, name, fmt.Sprintf("%s.%s", f.Kind, f.Field))
		require.Equal(t, "x", string(b))
	}
}

func TestEnvelope_HeaderWithoutIncarnation_IsRefused(t *testing.T) {
	_, err := AppendEnvelope(nil, Envelope{Header{To: samplePrefill}, Ping{1}})
	require.ErrorContains(t, err, "ping.from")
	_, err = AppendEnvelope(nil, Envelope{Header{From: samplePrefill}, Ping{1}})
	require.ErrorContains(t, err, "ping.to")
	e := sampleEnvelope(sampleBodies()[0])
	e.To = Incarnation{}
	b, err := AppendEnvelope(nil, e)
	require.NoError(t, err)
	got, err := ParseEnvelope(b)
	require.NoError(t, err)
	require.Equal(t, e, got)
}

func TestEnvelope_NotAMessageValue_IsRefused(t *testing.T) {
	for _, m := range []Message{nil, &Ping{1}, foreign(KindPing), foreign(KindEnd), foreign(0)} {
		_, err := AppendEnvelope(nil, sampleEnvelope(m))
		require.ErrorIs(t, err, ErrUnknownKind)
	}
}

type foreign Kind

func (f foreign) Kind() Kind { return Kind(f) }

func TestEnvelope_LongDetail_IsCutAtACharacter(t *testing.T) {
	b := encode(t, Failing{sampleName, 1, CauseCompute, "x" + strings.Repeat("é", MaxText)})
	e, err := ParseEnvelope(b)
	require.NoError(t, err)
	require.Equal(t, "x"+strings.Repeat("é", (MaxText-1)/2), e.Body.(Failing).Detail)
}

// A length that a peer names reserves nothing: the bytes behind it must be there.
func TestEnvelope_HugeCount_ReservesNothing(t *testing.T) {
	b := encode(t, Ask{Transfer: sampleName})
	at := HeaderBytes + 24 + 24 + 4*2 // the prompt's count
	b[at], b[at+1], b[at+2] = 0xff, 0xff, 0x7f
	resum(b)
	allocs := testing.AllocsPerRun(10, func() {
		_, err := ParseEnvelope(b)
		require.ErrorIs(t, err, ErrTruncated)
	})
	require.Less(t, allocs, 100.0)
	b[at+3] = 0xff
	_, err := ParseEnvelope(resum(b))
	require.ErrorIs(t, err, ErrRange)
}

func TestReadEnvelope_ByteByByte_SameMessages(t *testing.T) {
	var stream []byte
	for _, m := range sampleBodies() {
		stream = append(stream, encode(t, m)...)
	}
	r := iotest.OneByteReader(bytes.NewReader(stream))
	var scratch []byte
	for _, m := range sampleBodies() {
		var e Envelope
		var err error
		e, scratch, err = ReadEnvelope(r, scratch)
		require.NoError(t, err)
		require.Equal(t, m, e.Body)
	}
	_, _, err := ReadEnvelope(r, scratch)
	require.ErrorIs(t, err, io.EOF)
}

func TestReadEnvelope_CutStream_IsTruncated(t *testing.T) {
	b := encode(t, sampleBodies()[KindGrant-1])
	for n := 1; n < len(b); n++ {
		_, _, err := ReadEnvelope(bytes.NewReader(b[:n]), nil)
		require.ErrorIs(t, err, ErrTruncated)
		require.NotErrorIs(t, err, io.EOF)
	}
}

func TestReadEnvelope_NamedLength_ReservesWhatArrived(t *testing.T) {
	b := encode(t, Ping{1})[:HeaderBytes]
	b[8], b[9], b[10], b[11] = 0, 0, 0, 4 // 64 MiB
	_, scratch, err := ReadEnvelope(bytes.NewReader(append(b, make([]byte, 100)...)), nil)
	require.ErrorIs(t, err, ErrTruncated)
	require.Less(t, cap(scratch), 4*firstRead)
	b[8] = 1
	_, _, err = ReadEnvelope(bytes.NewReader(b), nil)
	require.ErrorIs(t, err, ErrOversize)
}

func TestReadEnvelope_Handshake_BoundsStrangers(t *testing.T) {
	_, _, err := ReadEnvelopeLimit(bytes.NewReader(encode(t, largeBodies()[0])), nil, MaxHandshakeBody)
	require.ErrorIs(t, err, ErrOversize)
	full := sampleBodies()[0].(Connect)
	full.Capabilities, full.Identity.Side = nil, nil
	for i := range MaxCapabilities {
		full.Capabilities = append(full.Capabilities, fmt.Sprintf("%02d%s", i, strings.Repeat("c", MaxName-2)))
	}
	for i := range MaxRanks {
		full.Identity.Side = append(full.Identity.Side, Incarnation{byte(i), 1})
	}
	full.Identity.Name, full.Identity.Size, full.Identity.Rank = strings.Repeat("n", MaxName), MaxRanks, 7
	full.Identity.Incarnation = full.Identity.Side[7]
	full.Layouts = nil
	for c := range ComponentCount {
		l := Layout{Component: c}
		s := strings.Repeat("m", MaxName)
		l.Equal.ModelRevision, l.Equal.Quantization, l.Equal.DType, l.Equal.ByteOrder = s, s, s, s
		full.Layouts = append(full.Layouts, l)
	}
	e, _, err := ReadEnvelopeLimit(bytes.NewReader(encode(t, full)), nil, MaxHandshakeBody)
	require.NoError(t, err, "the largest connect fits")
	require.Equal(t, full, e.Body)
}

func TestEnvelope_IncidentSize_RoundTrips(t *testing.T) {
	for _, m := range largeBodies() {
		b := encode(t, m)
		e, scratch, err := ReadEnvelope(bytes.NewReader(b), nil)
		require.NoError(t, err)
		require.Equal(t, sampleEnvelope(m), e)
		require.LessOrEqual(t, cap(scratch), 3*len(b))
	}
}

func BenchmarkEnvelope_IncidentSize(b *testing.B) {
	for _, m := range largeBodies() {
		raw := encode(b, m)
		b.Run(m.Kind().String(), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			var out []byte
			for b.Loop() {
				e, err := ParseEnvelope(raw)
				require.NoError(b, err)
				out, err = AppendEnvelope(out[:0], e)
				require.NoError(b, err)
			}
		})
	}
}
