//go:build chaos

package chaos

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// weather is what a wire does to frames. Shares are of 1000.
type weather struct {
	delay, jitter      time.Duration // each frame's delay, and what a late one has on top
	lose, double, late int           // lost, sent twice, held back so that others overtake it
	none               bool          // everything is lost
}

// wire carries Ethernet frames between two interfaces in the middle namespace, one goroutine a direction to read and one to
// send, and delays, loses, repeats and reorders them by its seed.
type wire struct {
	now   atomic.Pointer[weather]
	stop  context.CancelFunc
	wg    sync.WaitGroup
	ends  [2]int // packet sockets
	stats struct{ passed, lost, doubled, late atomic.Int64 }
}

// newWire starts a wire that does nothing to what passes.
func newWire(t *testing.T, h *hosts, seed uint64) *wire {
	w := &wire{}
	w.now.Store(&weather{})
	require.NoError(t, h.inside("m", func() error {
		for i, name := range h.inM {
			fd, err := packetSocket(name)
			if err != nil {
				return err
			}
			w.ends[i] = fd
		}
		return nil
	}))
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	for i := range w.ends {
		w.carry(ctx, w.ends[i], w.ends[1-i], rand.New(rand.NewPCG(seed, uint64(i))))
	}
	t.Cleanup(func() {
		w.stop()
		w.wg.Wait()
		for _, fd := range w.ends {
			require.NoError(t, unix.Close(fd))
		}
	})
	return w
}

// packetSocket sees every frame that arrives at an interface, and none that it sends itself.
func packetSocket(name string) (int, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	all := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all))
	if err != nil {
		return 0, err
	}
	return fd, errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index}))
}

// frame waits for its time; number keeps the order of those that are due together.
type frame struct {
	due    time.Time
	number uint64
	bytes  []byte
}

type line []frame

func (l line) Len() int      { return len(l) }
func (l line) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *line) Push(x any)   { *l = append(*l, x.(frame)) }
func (l line) Less(i, j int) bool {
	if l[i].due.Equal(l[j].due) {
		return l[i].number < l[j].number
	}
	return l[i].due.Before(l[j].due)
}
func (l *line) Pop() any {
	old := *l
	x := old[len(old)-1]
	old[len(old)-1] = frame{}
	*l = old[:len(old)-1]
	return x
}

// carry starts one direction.
func (w *wire) carry(ctx context.Context, from, to int, rng *rand.Rand) {
	frames := make(chan frame, 4096)
	w.wg.Go(func() {
		defer close(frames)
		buf := make([]byte, 1<<16)
		for n := uint64(0); ctx.Err() == nil; n++ {
			size, err := unix.Read(from, buf)
			if err != nil { // nothing came for a while, or the interface is down
				continue
			}
			for _, f := range w.fate(rng, buf[:size]) {
				f.number = n
				select {
				case frames <- f:
				default: // a full line loses, as a switch does
					w.stats.lost.Add(1)
				}
			}
		}
	})
	w.wg.Go(func() { w.send(frames, to) })
}

// fate is what becomes of a frame: none, one or two copies of it.
func (w *wire) fate(rng *rand.Rand, b []byte) (out []frame) {
	v := w.now.Load()
	copies := 1
	if v.none || rng.IntN(1000) < v.lose {
		w.stats.lost.Add(1)
		return nil
	}
	if rng.IntN(1000) < v.double {
		w.stats.doubled.Add(1)
		copies = 2
	}
	for range copies {
		due := time.Now().Add(v.delay)
		if rng.IntN(1000) < v.late {
			w.stats.late.Add(1)
			due = due.Add(time.Duration(rng.Int64N(int64(v.jitter) + 1)))
		}
		out = append(out, frame{due: due, bytes: append([]byte(nil), b...)})
	}
	w.stats.passed.Add(1)
	return out
}

// send puts frames on the other interface when they are due. An interface that is down loses them.
func (w *wire) send(frames <-chan frame, to int) {
	var waiting line
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		for len(waiting) > 0 && !waiting[0].due.After(time.Now()) {
			f := heap.Pop(&waiting).(frame)
			_, _ = unix.Write(to, f.bytes)
		}
		var due <-chan time.Time
		if len(waiting) > 0 {
			timer.Reset(time.Until(waiting[0].due))
			due = timer.C
		}
		select {
		case f, ok := <-frames:
			if !ok {
				return
			}
			heap.Push(&waiting, f)
		case <-due:
		}
	}
}
