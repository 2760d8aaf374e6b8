package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"kvfence/impl/core"
)

// The auxiliary record is the page of the Aux component: what prefill's last chunk found. Little-endian:
//
//	 0 magic u32   4 prompt tokens u32   8 first token i32   12 its logprob f32   16 alternatives u16   18 zero u16
//	20 alternatives: id i32, logprob f32 each
//
// Bytes behind the last alternative are zero. The page is sent whole, so its digest covers all of it.
const (
	auxMagic  = 0x4158564b // "KVXA"
	auxFixed  = 20
	auxTop    = 8
	auxMaxTop = 64
	// AuxBytes is the size of the record's page.
	AuxBytes = 1024
)

var errAux = errors.New("auxiliary record is malformed")

// auxRecord is the decoded record.
type auxRecord struct {
	Tokens uint32
	First  core.Token
}

// putAux writes r over the whole page.
func putAux(page []byte, r auxRecord) error {
	n := len(r.First.Top)
	if len(page) < auxFixed+n*auxTop || n > auxMaxTop {
		return fmt.Errorf("%w: %d alternatives in %d bytes", errAux, n, len(page))
	}
	clear(page)
	le := binary.LittleEndian
	le.PutUint32(page[0:], auxMagic)
	le.PutUint32(page[4:], r.Tokens)
	le.PutUint32(page[8:], uint32(r.First.ID))
	le.PutUint32(page[12:], math.Float32bits(r.First.Logprob))
	le.PutUint16(page[16:], uint16(n))
	for i, t := range r.First.Top {
		at := page[auxFixed+i*auxTop:]
		le.PutUint32(at, uint32(t.ID))
		le.PutUint32(at[4:], math.Float32bits(t.Logprob))
	}
	return nil
}

// getAux reads a record and checks its shape; vocab bounds the token ids.
func getAux(page []byte, vocab int) (auxRecord, error) {
	le := binary.LittleEndian
	if len(page) < auxFixed || le.Uint32(page) != auxMagic || le.Uint16(page[18:]) != 0 {
		return auxRecord{}, fmt.Errorf("%w: no record", errAux)
	}
	n := int(le.Uint16(page[16:]))
	if n > auxMaxTop || len(page) < auxFixed+n*auxTop {
		return auxRecord{}, fmt.Errorf("%w: %d alternatives", errAux, n)
	}
	r := auxRecord{Tokens: le.Uint32(page[4:]), First: core.Token{ID: int32(le.Uint32(page[8:])), Logprob: math.Float32frombits(le.Uint32(page[12:]))}}
	for i := range n {
		at := page[auxFixed+i*auxTop:]
		r.First.Top = append(r.First.Top, core.TopToken{ID: int32(le.Uint32(at)), Logprob: math.Float32frombits(le.Uint32(at[4:]))})
	}
	for _, id := range append([]core.TopToken{{ID: r.First.ID}}, r.First.Top...) {
		if id.ID < 0 || int(id.ID) >= vocab {
			return auxRecord{}, fmt.Errorf("%w: token %d of a vocabulary of %d", errAux, id.ID, vocab)
		}
	}
	return r, nil
}
