package model

import "math/bits"

// Set is a set of tuples, a bit for each; which tuple a bit stands for is said by the index functions below.
type Set [3]uint64

// Small is a Set whose tuples fit one word, Large one that needs more.
type (
	Small uint64
	Large [5]uint64
)

func (b *Set) has(i uint) bool   { return b[i>>6]>>(i&63)&1 != 0 }
func (b *Set) add(i uint)        { b[i>>6] |= 1 << (i & 63) }
func (b *Set) drop(i uint)       { b[i>>6] &^= 1 << (i & 63) }
func (b *Small) has(i uint) bool { return *b>>(i&63)&1 != 0 }
func (b *Small) add(i uint)      { *b |= 1 << (i & 63) }
func (b *Small) drop(i uint)     { *b &^= 1 << (i & 63) }

func (b *Large) has(i uint) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b *Large) add(i uint)      { b[i>>6] |= 1 << (i & 63) }
func (b *Large) drop(i uint)     { b[i>>6] &^= 1 << (i & 63) }

func (b *Large) size() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

func (b *Small) size() int { return bits.OnesCount64(uint64(*b)) }
func (b *Set) size() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// Sizes of the coordinates: one more than the settings allow, so that a state that leaves its type by one can be told from all
// others (TypeOK finds it).
const (
	nKind  = 5
	nLease = MaxLeases
	nPage  = MaxPages
	nRank  = MaxRanks
	nChan  = MaxChans
	nGen   = MaxLeases + 2
	nEpoch = MaxEpoch + 2
	nInc   = MaxInc + 2
	nDInc  = MaxDInc + 2
)

// Indexes of tuples. Leases count from 1, all else from 0. The lengths at the end tell that all fit their sets.
func writeAt(l, k, p, c, i uint8) uint {
	return (((uint(l-1)*nRank+uint(k))*nPage+uint(p))*nChan+uint(c))*nInc + uint(i)
}
func receiptAt(kind, l, k, i uint8) uint {
	return ((uint(kind)*nLease+uint(l-1))*nRank+uint(k))*nInc + uint(i)
}
func kernelAt(l, p, g, x uint8) uint {
	return ((uint(l-1)*nPage+uint(p))*nGen+uint(g))*nLease + uint(x-1)
}
func acceptAt(k, i, d, e uint8) uint {
	return ((uint(k)*nInc+uint(i))*nDInc+uint(d))*nEpoch + uint(e)
}
func noticeAt(l, k, c, i uint8) uint {
	return ((uint(l-1)*nRank+uint(k))*nChan+uint(c))*nInc + uint(i)
}
func tokenAt(l, x, m uint8) uint     { return (uint(l-1)*nLease+uint(x-1))*(nLease+1) + uint(m) }
func publishedAt(p, g, x uint8) uint { return (uint(p)*nGen+uint(g))*nLease + uint(x-1) }
func sharedAt(l, p, x uint8) uint    { return (uint(l-1)*nPage+uint(p))*nLease + uint(x-1) }
func fencedAt(k, d, e uint8) uint    { return (uint(k)*nDInc+uint(d))*nEpoch + uint(e) }

const (
	bitsOfSet   = 64 * len(Set{})
	bitsOfSmall = 64
	bitsOfLarge = 64 * len(Large{})
)

// The compiler refuses a negative length: sets are large enough.
var (
	_ [bitsOfSet - nLease*nRank*nPage*nChan*nInc]struct{}
	_ [bitsOfSet - nKind*nLease*nRank*nInc]struct{}
	_ [bitsOfLarge - nLease*nPage*nGen*nLease]struct{}
	_ [bitsOfSet - nRank*nInc*nDInc*nEpoch]struct{}
	_ [bitsOfSmall - nLease*nRank*nChan*nInc]struct{}
	_ [bitsOfSet - nLease*nLease*(nLease+1)]struct{}
	_ [bitsOfSet - nPage*nGen*nLease]struct{}
	_ [bitsOfSmall - nLease*nPage*nLease]struct{}
	_ [bitsOfSmall - nRank*nDInc*nEpoch]struct{}
)
