package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/device/devicetest"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// opaque is the same memory as an opaque device has it.
func opaque(o *devicetest.Opaque, m device.Memory) (out device.Memory) {
	for c, p := range m {
		if p != nil {
			out[c] = o.Over(p)
		}
	}
	return out
}

// Pools that the host cannot address, at either end or both: through staging memory, digests of what landed by the device, tags behind their bytes.
func TestPush_PoolsOnADevice_LandWholeAndOnce(t *testing.T) {
	for sname, shape := range shapes {
		for seed, on := range [][2]bool{{false, true}, {true, false}, {true, true}} {
			for _, opts := range []Options{{}, {Streams: 3}, {TLS: tlsPair()}} {
				t.Run(fmt.Sprintf("%s/%v/%d streams/TLS %v", sname, on, opts.Streams, opts.TLS != nil), func(t *testing.T) {
					o := devicetest.NewOpaque(uint64(seed))
					src, dst := memoryOf(t, shape.src), memoryOf(t, shape.dst)
					srcOn, dstOn := src, dst
					if on[0] {
						srcOn = opaque(o, src)
					}
					if on[1] {
						dstOn = opaque(o, dst)
					}
					newLinkOn(t, src, dst, srcOn, dstOn, opts).pushAll(t, rand.New(rand.NewSource(int64(seed))))
				})
			}
		}
	}
}

// onDevice is a scene whose pool is on a device.
func onDevice(t testing.TB, o *devicetest.Opaque) *scene {
	s := newScene(t)
	s.grants = transport.NewGrants(opaque(o, s.mem))
	s.grants.Raise(3)
	s.allow()
	return s
}

// A liar writes nothing outside of its grants, on a device either: random changes of an honest stream.
func TestReceiver_LiesToADevice_NothingOutsideOfTheGrants(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for i := range 400 {
		s := onDevice(t, devicetest.NewOpaque(uint64(i)))
		b := honestStream()
		for range r.Intn(6) {
			b[r.Intn(len(b))] ^= byte(1 << r.Intn(8))
		}
		b = b[:r.Intn(len(b)+1)]
		_ = s.feed(b, func() int { return 1 + r.Intn(5000) })
		s.outside(t)
	}
}

// honestStream is one frame of two pages.
func honestStream() []byte {
	second := entry{spec.KV, 0, 1, spec.GrantedPage{Page: 2, Gen: 20}, 1024}
	pages := [][]byte{make([]byte, 1024), make([]byte, 1024)}
	fill(pages[0], 7)
	fill(pages[1], 8)
	return appendNotice(appendFrame(nil, 1, []entry{honest(), second}, pages, []spec.Tag{{Lease: 1, Gen: 50}, {Lease: 1, Gen: 20, Index: 1}}), 1, 9)
}

// No tag is stored before all bytes of its frame have landed, wherever the stream breaks.
func TestReceiver_StreamBreaks_DeviceHasNoTag(t *testing.T) {
	whole := honestStream()
	frame := len(whole) - frameBytes
	for cut := range frame {
		if cut%37 != 0 && cut < frame-3 {
			continue
		}
		s := onDevice(t, devicetest.NewOpaque(uint64(cut)))
		require.Error(t, s.feed(whole[:cut], all))
		require.True(t, bytes.Equal(s.tags, s.mem[spec.KV].Tags), "cut at %d of %d", cut, frame)
	}
	s := onDevice(t, devicetest.NewOpaque(1))
	_ = s.feed(whole, all)
	require.Equal(t, spec.TagGood, device.CheckTag(s.mem[spec.KV].Slot(5, 0), spec.Tag{Lease: 1, Gen: 50}))
}

var errBad = errors.New("a page of the device is bad")

// A call of the device that is refused ends the stream, and what was not done is over; a device that is lost in the middle leaves placements without an end: no fence is
// ever done.
func TestReceiver_DeviceFails_FenceTellsTheTwoApart(t *testing.T) {
	for _, call := range []string{"Lane", "Land", "Wait", "Put"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s lost %v", call, lost), func(t *testing.T) {
				o := devicetest.NewOpaque(5)
				cause := errBad
				if lost {
					cause = fmt.Errorf("%w: %w", device.ErrLost, errBad)
				}
				o.FailOn(func(op string) error {
					if op == call {
						return cause
					}
					return nil
				})
				s := onDevice(t, o)
				x := &receiver{w: &byteWire{honestStream(), all}, epoch: 3, grants: s.grants, sink: s.sink}
				require.ErrorIs(t, x.run(), errBad)
				s.grants.Raise(4)
				err := s.grants.Wait(4)
				if lost || call == "Wait" { // which never says that what was begun is over
					require.ErrorIs(t, err, device.ErrLost)
				} else {
					require.NoError(t, err)
				}
				require.True(t, bytes.Equal(s.tags, s.mem[spec.KV].Tags), "a tag was stored")
			})
		}
	}
}

// A call that fails once leaves nothing that lands behind a fence: what is in progress is waited for before its placement ends.
func TestReceiver_DeviceFailsOnce_NothingLandsBehindTheFence(t *testing.T) {
	for _, call := range []string{"Lane", "Land", "Wait", "Put"} {
		t.Run(call, func(t *testing.T) {
			for seed := range uint64(20) {
				o := devicetest.NewOpaque(seed)
				failed := false
				o.FailOn(func(op string) error {
					if op == call && !failed {
						failed = true
						return errBad
					}
					return nil
				})
				s := onDevice(t, o)
				x := &receiver{w: &byteWire{honestStream(), all}, epoch: 3, grants: s.grants, sink: s.sink}
				var err error
				for err == nil {
					err = x.frame()
				}
				require.ErrorIs(t, err, errBad)
				s.grants.Raise(4)
				require.NoError(t, s.grants.Wait(4))
				before := bytes.Clone(s.mem[spec.KV].Bytes)
				x.closeStagers()
				require.True(t, bytes.Equal(before, s.mem[spec.KV].Bytes), "seed %d: bytes landed behind the fence", seed)
				require.True(t, bytes.Equal(s.tags, s.mem[spec.KV].Tags), "a tag was stored")
			}
		})
	}
}

// A source whose device is lost while a page of it is read is never fenced.
func TestSource_DeviceIsLost_IsNeverFenced(t *testing.T) {
	for _, lost := range []bool{false, true} {
		o := devicetest.NewOpaque(6)
		src, dst := memoryOf(t, kvLayout(16, 2, 0, 4, 4, 8)), memoryOf(t, kvLayout(16, 2, 0, 4, 4, 8))
		k := &link{src: src, dst: dst}
		cause := errBad
		if lost {
			cause = fmt.Errorf("%w: %w", device.ErrLost, errBad)
		}
		ssink := &failedSink{sourceSink: newSourceSink(), failed: make(chan error, 1)}
		k.open(t, ssink, opaque(o, src), dst, Options{})
		waits := 0
		o.FailOn(func(op string) error {
			if op != "Wait" {
				return nil
			}
			if waits++; lost || waits == 1 {
				return cause
			}
			return nil
		})
		r := rand.New(rand.NewSource(5))
		j, b := k.plan(t, r, 1, 50, perm(r, 8), perm(r, 8), true)
		k.grants.Allow(j.grant)
		k.source.Post(b)
		require.ErrorIs(t, (<-ssink.posted).err, errBad)
		k.source.Fence()
		select {
		case err := <-ssink.failed:
			require.True(t, lost, "%v", err)
			require.ErrorIs(t, err, device.ErrLost)
		case <-ssink.done:
			require.False(t, lost)
		}
		k.grants.Raise(2)
		k.target.Fence()
		<-k.tsink.done
		require.NoError(t, k.listener.Close())
	}
}

// failedSink hears of fences that failed.
type failedSink struct {
	*sourceSink
	failed chan error
}

func (s *failedSink) FenceFailed(err error) { s.failed <- err }
