package workload

import "github.com/zeebo/xxh3"

// digest hashes every KV byte of positions 0..n-1, each in its place, so that
// the logits depend on all of them exactly, whatever rounding does to the sums of
// attention. How the positions are cut into runs does not matter.
func digest(r reader, g Geometry, seed uint64, n int) (uint64, error) {
	sum := splitmix(seed ^ uint64(n))
	h := xxh3.New()
	for layer := range g.Layers {
		for kv := range 2 {
			for head := range g.KVHeads {
				h.Reset()
				for pos := 0; pos < n; {
					b, err := r.next(layer, kv, head, pos, n-pos)
					if err != nil {
						return 0, err
					}
					_, _ = h.Write(b) // a Hasher's Write never fails
					pos += len(b) / r.slot
				}
				sum = splitmix(sum ^ h.Sum64())
			}
		}
	}
	return sum, nil
}

// bias makes answers mostly readable: lower-case words, now and then an end.
func bias(id int32) float32 {
	switch {
	case id == EOS:
		return -0.5
	case id == ' ':
		return 2.5
	case id >= 'a' && id <= 'z':
		return 0
	case id == '.' || id == ',' || id >= '0' && id <= '9':
		return -3
	case id > ' ' && id <= '~':
		return -5
	}
	return -30
}
