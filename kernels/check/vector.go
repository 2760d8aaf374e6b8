package check

import (
	"encoding/binary"

	"kvfence/kernels"
)

// DigestOf is the digest that kvf_digest makes of one page of these bytes; it is the item's header.
func DigestOf(d Device, bytes []byte, it kernels.Item) (uint64, error) {
	b := newBench(d, NewRandom(uint64(len(bytes))))
	n := uint32(len(bytes))
	it.Used = n
	cut := kernels.Cut{Run: kernels.NewDiv(max(n, 1)), N: [3]kernels.Div{{D: 1}, {D: 1}, {D: 1}}, Used: n}
	if n%16 == 0 {
		cut.Flags = kernels.CutAligned
	}
	a := &kernels.MoveArgs{NCuts: 1}
	items := []kernels.Item{it}
	values := a.Place(items)
	a.Src = kernels.NewView(b.put("page", bytes, 0, false), uint64(n+15)/16*16, 1)
	a.Cuts, a.Items = b.table("cut", cut), b.table("items", items)
	a.Values, a.Counters = b.put("values", make([]byte, 8*values), 0, true), b.put("counters", make([]byte, 4), 0, true)
	a.Results = b.put("results", make([]byte, 16), 0, true)
	b.launch(kernels.NameDigest, a.Grid(), a)
	var out [16]byte
	if b.err == nil {
		b.err = d.Read(a.Results, out[:])
	}
	return binary.LittleEndian.Uint64(out[:]), b.end()
}
