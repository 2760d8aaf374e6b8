package device_test

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"kvfence/impl/device"
	"kvfence/spec"
)

func someTag() spec.Tag {
	return spec.Tag{Lease: 7, Gen: 9, Part: 2, Index: 11, Domain: spec.DomainOf("tenant", "salt", "adapter", "rev"), Digest: 0xfeed, Used: 4096, HasDigest: true}
}

func drawTag(t *rapid.T) spec.Tag {
	g := spec.Tag{
		Lease: spec.LeaseID(rapid.Uint64().Draw(t, "lease")), Gen: spec.Generation(rapid.Uint64().Draw(t, "gen")),
		Part: spec.PartIndex(rapid.Uint16().Draw(t, "part")), Index: rapid.Uint32().Draw(t, "index"),
		Used: rapid.Uint32().Draw(t, "used"), HasDigest: rapid.Bool().Draw(t, "has"),
	}
	if g.HasDigest {
		g.Digest = rapid.Uint64().Draw(t, "digest")
	}
	copy(g.Domain[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "domain"))
	return g
}

func TestTag_PutThenGet_SameTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTag(t)
		slot := make([]byte, spec.TagBytes)
		device.PutTag(slot, want)
		got, state := device.GetTag(slot)
		require.Equal(t, spec.TagGood, state)
		require.Equal(t, want, got)
		require.Equal(t, spec.TagGood, device.CheckTag(slot, want))
		other := drawTag(t)
		require.Equal(t, want == other, device.CheckTag(slot, other) == spec.TagGood)
	})
}

func TestCheckTag_VoidSlot_IsVoidWhateverIsExpected(t *testing.T) {
	slot := make([]byte, spec.TagBytes)
	require.Equal(t, spec.TagVoid, device.CheckTag(slot, someTag()))
	require.Equal(t, spec.TagVoid, device.CheckTag(slot, spec.Tag{}), "an all-zero expectation is no void slot either")
}

func TestCheckTag_OtherField_IsForeign(t *testing.T) {
	fields := map[string]func(*spec.Tag){
		"lease": func(g *spec.Tag) { g.Lease++ }, "generation": func(g *spec.Tag) { g.Gen-- }, "part": func(g *spec.Tag) { g.Part++ },
		"index": func(g *spec.Tag) { g.Index++ }, "domain": func(g *spec.Tag) { g.Domain[15] ^= 1 }, "digest": func(g *spec.Tag) { g.Digest++ },
		"used": func(g *spec.Tag) { g.Used-- }, "has digest": func(g *spec.Tag) { g.HasDigest = false },
	}
	for name, change := range fields {
		t.Run(name, func(t *testing.T) {
			other, slot := someTag(), make([]byte, spec.TagBytes)
			change(&other)
			device.PutTag(slot, other)
			require.Equal(t, spec.TagForeign, device.CheckTag(slot, someTag()))
		})
	}
}

func TestCheckTag_DigestWithoutHasDigest_IsNotCompared(t *testing.T) {
	a, b, slot := someTag(), someTag(), make([]byte, spec.TagBytes)
	a.HasDigest, b.HasDigest, b.Digest = false, false, 1
	device.PutTag(slot, a)
	require.Equal(t, spec.TagGood, device.CheckTag(slot, b))
}

func TestCheckTag_AnyBitFlipped_IsTorn(t *testing.T) {
	for bit := range 8 * spec.TagBytes {
		slot := make([]byte, spec.TagBytes)
		device.PutTag(slot, someTag())
		slot[bit/8] ^= 1 << (bit % 8)
		require.Equal(t, spec.TagTorn, device.CheckTag(slot, someTag()), "bit %d", bit)
	}
}

// A store that was cut anywhere leaves a mixture of old and new; it is torn, also where the old tag was void.
func TestCheckTag_HalfStored_IsTornBeforeForeign(t *testing.T) {
	older := someTag()
	older.Lease, older.Gen, older.Digest = 1, 8, 77
	for _, before := range []bool{true, false} {
		for cut := 1; cut < spec.TagBytes; cut++ {
			from, to := make([]byte, spec.TagBytes), make([]byte, spec.TagBytes)
			if before {
				device.PutTag(from, older)
			}
			device.PutTag(to, someTag())
			slot := append(append([]byte{}, to[:cut]...), from[cut:]...)
			if string(slot) == string(from) || string(slot) == string(to) {
				continue
			}
			require.Equal(t, spec.TagTorn, device.CheckTag(slot, someTag()), "cut at %d", cut)
		}
	}
}

func TestGetTag_UnknownFlagOrReservedByte_IsForeign(t *testing.T) {
	for _, at := range []int{18, 19, 52, 55} {
		slot := make([]byte, spec.TagBytes)
		device.PutTag(slot, someTag())
		slot[at] |= 0x80
		reseal(slot)
		_, state := device.GetTag(slot)
		require.Equal(t, spec.TagForeign, state, "byte %d", at)
		require.Equal(t, spec.TagForeign, device.CheckTag(slot, someTag()))
	}
}

func reseal(slot []byte) {
	h := xxh3.Hash(slot[:56])
	for i := range 8 {
		slot[56+i] = byte(h >> (8 * i))
	}
}

func TestCheckTag_ManySlots_AllocatesNothing(t *testing.T) {
	slot := make([]byte, spec.TagBytes)
	device.PutTag(slot, someTag())
	want := someTag()
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = device.CheckTag(slot, want) }))
	void := make([]byte, spec.TagBytes)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = device.CheckTag(void, want) }))
}

func BenchmarkCheckTag(b *testing.B) {
	slots := make([]byte, 1<<20)
	r := rand.New(rand.NewSource(1))
	for i := 0; i < len(slots); i += spec.TagBytes {
		device.PutTag(slots[i:], someTag())
	}
	want := someTag()
	for b.Loop() {
		at := r.Intn(len(slots)/spec.TagBytes) * spec.TagBytes
		if device.CheckTag(slots[at:], want) != spec.TagGood {
			b.Fatal("not good")
		}
	}
}
