package device

// StreamMin is the length from which CopyStream is worth its price: below it, or where the destination is read again soon,
// plain copy is faster (measured: requests over about 2 MiB of pages of 64 KiB and more).
const StreamMin = 64 << 10

// streamer copies n bytes with stores that bypass the cache, and orders them before later stores. dst is aligned to streamAlign
// and n is a positive multiple of streamUnit.
type streamer func(dst, src *byte, n int)

const (
	streamAlign = 64
	streamUnit  = 256
)

// CopyStream copies min(len(dst), len(src)) bytes like copy, with stores that bypass the cache where the processor can, and
// returns the count. When it returns, the bytes are ordered before any later store of this goroutine: a tag written next is
// never seen before them. dst and src do not overlap.
func CopyStream(dst, src []byte) int { return copyStream(dst, src, bestStream.copy) }

// StreamKind names what CopyStream uses here: "avx512", "avx2" or "copy".
func StreamKind() string { return bestStream.name }

// stream is one way to copy past the cache.
type stream struct {
	name string
	copy streamer // nil: plain copy
}

var bestStream = pickStream()

func copyStream(dst, src []byte, body streamer) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	if body == nil || n < streamAlign+streamUnit {
		return copy(dst, src)
	}
	head := misalign(dst)
	copy(dst[:head], src)
	whole := (n - head) &^ (streamUnit - 1)
	if whole > 0 {
		body(&dst[head], &src[head], whole)
	}
	copy(dst[head+whole:], src[head+whole:])
	return n
}
