package check

import (
	"encoding/binary"

	"kvfence/impl/device"
	"kvfence/kernels"
	"kvfence/kernels/emulation"
	"kvfence/spec"
)

// verifier is a pool's tags, a block table and what the ledger expects, over several steps.
type verifier struct {
	*bench
	args  kernels.VerifyArgs
	tags  []byte
	table []uint32
	wants []kernels.Want
	count uint32
	flag  uint32
	want  kernels.Report
}

// Verify checks kvf_tagverify: some steps on the same state, tags and tables changing between them.
func Verify(d Device, r Draw, big bool) error {
	v := &verifier{bench: newBench(d, r)}
	capacity := v.r.Int(0, 300, "capacity")
	if v.chance(3, "several blocks") {
		capacity = v.r.Int(257, 700, "larger capacity")
	}
	if big {
		capacity *= 3
	}
	v.setup(capacity)
	for step := range v.r.Int(1, 3, "steps") {
		v.draw(capacity)
		v.step(uint64(step + 1))
	}
	return v.end()
}

func (v *verifier) setup(capacity int) {
	a := &v.args
	a.Pages, a.TagSlots, a.Capacity = uint32(v.r.Int(1, 90, "pages")), uint32(v.r.Int(1, 3, "slots")), uint32(capacity)
	a.TableLen = uint32(v.r.Int(1, 200, "table"))
	v.tags = make([]byte, int(a.Pages*a.TagSlots)*spec.TagBytes)
	a.Tags = v.put("tags", v.tags, 0, false)
	a.Table = v.put("table", make([]byte, 4*a.TableLen), 0, false)
	a.Wants = v.put("wants", make([]byte, 80*capacity), 0, false)
	a.Count = v.put("count", make([]byte, 4), 0, false)
	a.Blocks = v.put("blocks", v.bytes(272*int(a.Grid())), 0, true)
	v.expect("blocks", nil)
	a.State = v.put("state", make([]byte, 32), 0, true)
	a.Flag = v.put("flag", make([]byte, 4), 0, true)
	a.Report = v.put("report", make([]byte, 296), 0, true)
}

// draw makes a step: every entry has a tag of its own that its page holds, then some are spoilt.
func (v *verifier) draw(capacity int) {
	a := v.args
	v.table = make([]uint32, a.TableLen)
	for i := range v.table {
		v.table[i] = uint32(v.content.IntN(int(a.Pages)))
	}
	for i := range v.tags {
		v.tags[i] = 0
	}
	v.wants = make([]kernels.Want, capacity)
	held := map[uint32]spec.Tag{}
	spoils := []int{0, 0, 1, 5, 50, 1000}[v.r.Int(0, 5, "spoilt of a thousand")]
	for i := range v.wants {
		w := &v.wants[i]
		w.At, w.Slot, w.Live = uint32(v.content.IntN(int(a.TableLen))), uint32(v.content.IntN(int(a.TagSlots))), 1
		at := v.table[w.At]*a.TagSlots + w.Slot
		t, ok := held[at]
		if !ok {
			t = v.newTag(w.Slot)
			held[at] = t
			device.PutTag(v.tags[at*spec.TagBytes:][:spec.TagBytes], t)
		}
		device.PutTag(w.Tag[:], t)
		if v.content.IntN(20) == 0 {
			w.Live = 0
			copy(w.Tag[:], "a hole holds anything")
		}
	}
	for i := range v.wants {
		if v.content.IntN(1000) < spoils {
			w := &v.wants[i]
			v.spoil(w, held[v.table[w.At]*a.TagSlots+w.Slot])
		}
	}
	v.count = uint32(v.r.Int(0, capacity, "count"))
	if v.chance(20, "too many") {
		v.count = uint32(capacity) + 1
	}
}

func (v *verifier) newTag(slot uint32) spec.Tag {
	t := spec.Tag{Lease: spec.LeaseID(v.content.Uint64()), Gen: spec.Generation(v.content.Uint64N(1 << 40)), Part: spec.PartIndex(slot), Index: v.content.Uint32(), Used: v.content.Uint32(), HasDigest: v.content.IntN(2) == 0, Digest: v.content.Uint64()}
	for i := range t.Domain {
		t.Domain[i] = byte(v.content.Uint32())
	}
	return t
}

// spoil changes what one entry expects by one field, or breaks the table, the place or the slot that it names.
func (v *verifier) spoil(w *kernels.Want, t spec.Tag) {
	if w.At >= v.args.TableLen || w.Slot >= v.args.TagSlots || v.table[w.At] >= v.args.Pages {
		return // spoilt by another entry
	}
	slot := v.tags[(v.table[w.At]*v.args.TagSlots+w.Slot)*spec.TagBytes:][:spec.TagBytes]
	switch v.content.IntN(13) {
	case 0:
		clear(slot) // for every entry that reads it
		return
	case 1:
		slot[v.content.IntN(spec.TagBytes)] ^= 1 << v.content.IntN(8)
		return
	case 2:
		w.At = v.args.TableLen + uint32(v.content.IntN(3))
		return
	case 3:
		w.Slot = v.args.TagSlots
		return
	case 4:
		v.table[w.At] = []uint32{v.args.Pages, 1 << 31, kernels.None}[v.content.IntN(3)]
		return
	case 5:
		v.table[w.At] = uint32(v.content.IntN(int(v.args.Pages))) // a wrong block table, of a page that is somebody's
		return
	case 6:
		clear(w.Tag[:]) // the slot is expected void
		return
	case 7:
		t.Lease++
	case 8:
		t.Gen++
	case 9:
		t.Index++
	case 10:
		t.Part++
	case 11:
		t.Domain[v.content.IntN(16)]++
	default:
		t.Used++
	}
	device.PutTag(w.Tag[:], t)
}

// step launches one and compares flag, report and state.
func (v *verifier) step(step uint64) {
	if v.err != nil {
		return
	}
	a := v.args
	v.reference(step)
	for _, w := range []struct {
		name string
		at   kernels.Addr
		b    []byte
	}{{"tags", a.Tags, v.tags}, {"table", a.Table, encode(v.table)}, {"wants", a.Wants, encode(v.wants)}, {"count", a.Count, encode(v.count)}} {
		if v.err == nil {
			v.err = v.d.Write(w.at, w.b)
		}
		v.expect(w.name, w.b)
	}
	report := encode(v.want)
	v.expect("report", report)
	v.expect("state", encode(kernels.VerifyState{Step: step}))
	v.expect("flag", encode(v.flag))
	v.watch(a.Report, 8, true, emulation.Watched{At: a.Report + 8, Expected: report[8:]})
	v.watch(a.Flag, 4, true, emulation.Watched{At: a.Report + 8, Expected: report[8:]})
	v.launch(kernels.NameTagVerify, a.Grid(), &a)
	v.compare()
	if v.err == nil {
		v.err = v.d.Unwatch()
	}
}

// reference is the report as device.CheckTag gives it. Offenders that the report has no room for keep what stood there.
func (v *verifier) reference(step uint64) {
	rep := kernels.Report{Step: step, Offenders: v.want.Offenders}
	if v.count > v.args.Capacity {
		rep.Checked, rep.Bad, rep.States[kernels.TagOutside] = v.count, v.count, v.count
	} else {
		for i, w := range v.wants[:v.count] {
			if w.Live == 0 {
				continue
			}
			page, state := v.check(w)
			rep.Checked++
			rep.States[state]++
			if state == uint32(spec.TagGood) {
				continue
			}
			if rep.Bad++; rep.Kept < kernels.MaxOffenders {
				rep.Offenders[rep.Kept] = kernels.Offender{Entry: uint32(i), Page: page, Slot: w.Slot, State: state}
				rep.Kept++
			}
		}
	}
	v.want, v.flag = rep, kernels.FlagGood
	if rep.Bad > 0 {
		v.flag = kernels.FlagBad
	}
}

func (v *verifier) check(w kernels.Want) (page, state uint32) {
	if w.At >= v.args.TableLen {
		return kernels.None, kernels.TagOutside
	}
	if page = v.table[w.At]; page >= v.args.Pages || w.Slot >= v.args.TagSlots {
		return page, kernels.TagOutside
	}
	slot := v.tags[(page*v.args.TagSlots+w.Slot)*spec.TagBytes:][:spec.TagBytes]
	return page, uint32(stateOf(slot, w.Tag))
}

// stateOf is device.CheckTag with an encoded tag, which may also be the void one.
func stateOf(slot []byte, want [spec.TagBytes]byte) spec.TagState {
	if want == [spec.TagBytes]byte(slot) {
		return spec.TagGood
	}
	le := binary.LittleEndian
	if want == ([spec.TagBytes]byte{}) {
		_, s := device.GetTag(slot)
		if s == spec.TagGood {
			s = spec.TagForeign
		}
		return s
	}
	flags := le.Uint16(want[18:])
	t := spec.Tag{Lease: spec.LeaseID(le.Uint64(want[0:])), Gen: spec.Generation(le.Uint64(want[8:])), Part: spec.PartIndex(le.Uint16(want[16:])), Index: le.Uint32(want[20:]),
		Digest: le.Uint64(want[40:]), Used: le.Uint32(want[48:]), HasDigest: flags&1 != 0}
	copy(t.Domain[:], want[24:40])
	return device.CheckTag(slot, t)
}
