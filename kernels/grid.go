package kernels

// sliceChunks is how many chunks one block moves at most: eight a warp of 32.
const sliceChunks = 64

// Chunks is how many chunks a part of used bytes has.
func Chunks(used uint32) uint32 { return (used + Chunk - 1) / Chunk }

// Place fills in what follows from the list itself: First of each item, and the slices of the launch. It returns how many chunk values
// the scratch needs room for.
func (a *MoveArgs) Place(items []Item) (values uint32) {
	most := uint32(1)
	for i := range items {
		items[i].First = values
		n := Chunks(items[i].Used)
		values += n
		most = max(most, n)
	}
	a.NItems = uint32(len(items))
	a.SliceChunks = min(most, sliceChunks)
	a.Slices = (most + a.SliceChunks - 1) / a.SliceChunks
	return values
}

// Grid is the number of blocks; 0: nothing to launch.
func (a *MoveArgs) Grid() uint32 { return a.NItems * a.Slices }

// Grid is the number of blocks, at least 1: an empty step still sets its flag.
func (a *VerifyArgs) Grid() uint32 { return max(1, (a.Capacity+VerifyEntries-1)/VerifyEntries) }

// scrubSlice is how many bytes one block scrubs.
const scrubSlice = 64 << 10

// Place sets Slices from SpanBytes.
func (a *ScrubArgs) Place() {
	a.Slices = uint32(max(1, (a.SpanBytes+scrubSlice-1)/scrubSlice))
}

// Grid is the number of blocks; 0: nothing to launch.
func (a *ScrubArgs) Grid() uint32 { return a.N * a.Spans * a.Slices }

// Grid is the number of blocks; 0: nothing to launch.
func (a *PutArgs) Grid() uint32 { return (a.N*4 + Threads - 1) / Threads }
