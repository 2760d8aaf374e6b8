package core

// timer is one entry of a machine's clock: what is due, told by kind and keys. Entries are never taken back; who handles one
// asks whether it still means something.
type timer struct {
	at   Time
	seq  uint64 // entries of one time fire in the order in which they were set
	kind uint8
	a, b uint64
}

// timers is a binary heap of timers, earliest first. The zero value is empty.
type timers struct {
	heap []timer
	seq  uint64
}

// set adds an entry. O(log n).
func (t *timers) set(at Time, kind uint8, a, b uint64) {
	t.seq++
	t.heap = append(t.heap, timer{at, t.seq, kind, a, b})
	for i := len(t.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !t.less(i, up) {
			return
		}
		t.heap[i], t.heap[up] = t.heap[up], t.heap[i]
		i = up
	}
}

func (t *timers) less(i, j int) bool {
	a, b := &t.heap[i], &t.heap[j]
	return a.at < b.at || (a.at == b.at && a.seq < b.seq)
}

// next is the time of the earliest entry; 0 if there is none.
func (t *timers) next() Time {
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].at
}

// due takes out the earliest entry if its time has come. O(log n).
func (t *timers) due(now Time) (timer, bool) {
	if len(t.heap) == 0 || t.heap[0].at > now {
		return timer{}, false
	}
	out := t.heap[0]
	last := len(t.heap) - 1
	t.heap[0] = t.heap[last]
	t.heap = t.heap[:last]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && t.less(c, least) {
				least = c
			}
		}
		if least == i {
			return out, true
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
}
