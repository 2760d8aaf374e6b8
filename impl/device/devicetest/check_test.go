package devicetest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/impl/device"
	"kvfence/impl/device/devicetest"
	"kvfence/spec"
)

const steps = 40

func TestDevice_Host_KeepsTheRules(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := device.NewHost()
		require.NoError(r, devicetest.Check(d, rapid.Uint64().Draw(r, "seed"), steps))
		require.NoError(r, d.Close())
	})
}

func TestDevice_Opaque_KeepsTheRules(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := devicetest.NewOpaque(rapid.Uint64().Draw(r, "order"))
		require.NoError(r, devicetest.Check(d, rapid.Uint64().Draw(r, "seed"), steps))
		require.NoError(r, d.Close())
	})
}

// A device that is lost says so to everyone, once and for all, and nothing of it is used again.
func TestDevice_Lost_RefusesEverything(t *testing.T) {
	cause := errors.New("a page of it is bad")
	for name, d := range map[string]device.Device{"host": device.NewHost(), "opaque": devicetest.NewOpaque(1)} {
		require.NoError(t, d.Err(), name)
		select {
		case <-d.Lost():
			t.Fatal("lost at the start")
		default:
		}
		d.Fail(cause)
		d.Fail(errors.New("another"))
		<-d.Lost()
		require.ErrorIs(t, d.Err(), device.ErrLost)
		require.ErrorIs(t, d.Err(), cause)
		_, err := d.NewPool(spec.NewDense(spec.KV, spec.Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 1, KVs: 1, TokensPerPage: 1, Layers: 1, Heads: 1}, 0, 1, 0, 1, 2, 1))
		require.ErrorIs(t, err, device.ErrLost)
	}
}

// broken is a store with one rule broken.
type broken struct {
	device.Store
	void   func([]spec.PageID) error
	put    func([]device.SlotTag) error
	check  func([]device.SlotTag) ([]spec.TagState, error)
	digest func([]device.PagePart) ([]uint64, error)
	copy   func(uint32, spec.PageID, spec.PageID, uint32) error
	scrub  func([]spec.PageID, byte) error
	lane   func(device.Lane) device.Lane
}

func (b broken) Void(p []spec.PageID) error {
	if b.void != nil {
		return b.void(p)
	}
	return b.Store.Void(p)
}

func (b broken) Put(x []device.SlotTag) error {
	if b.put != nil {
		return b.put(x)
	}
	return b.Store.Put(x)
}

func (b broken) Check(x []device.SlotTag) ([]spec.TagState, error) {
	if b.check != nil {
		return b.check(x)
	}
	return b.Store.Check(x)
}

func (b broken) Digests(x []device.PagePart) ([]uint64, error) {
	if b.digest != nil {
		return b.digest(x)
	}
	return b.Store.Digests(x)
}

func (b broken) CopyTokens(i uint32, from, to spec.PageID, n uint32) error {
	if b.copy != nil {
		return b.copy(i, from, to, n)
	}
	return b.Store.CopyTokens(i, from, to, n)
}

func (b broken) Scrub(p []spec.PageID, with byte) error {
	if b.scrub != nil {
		return b.scrub(p, with)
	}
	return b.Store.Scrub(p, with)
}

func (b broken) Lane(n int) (device.Lane, error) {
	l, err := b.Store.Lane(n)
	if err == nil && b.lane != nil {
		l = b.lane(l)
	}
	return l, err
}

// spoilt is a device whose pools have a broken store.
type spoilt struct {
	device.Device
	spoil func(device.Store) broken
}

func (s spoilt) NewPool(l spec.Layout) (*device.Pool, error) {
	p, err := s.Device.NewPool(l)
	if err == nil {
		p.Store = s.spoil(p.Store)
	}
	return p, err
}

// badLane has one rule of a lane broken.
type badLane struct {
	device.Lane
	land  func(device.Lane, []device.Landing) error
	fetch func(device.Lane, []device.Staged) error
	wait  func(device.Lane) ([]uint64, error)
}

func (b badLane) Land(x []device.Landing) error {
	if b.land != nil {
		return b.land(b.Lane, x)
	}
	return b.Lane.Land(x)
}

func (b badLane) Fetch(x []device.Staged) error {
	if b.fetch != nil {
		return b.fetch(b.Lane, x)
	}
	return b.Lane.Fetch(x)
}

func (b badLane) Wait() ([]uint64, error) {
	if b.wait != nil {
		return b.wait(b.Lane)
	}
	return b.Lane.Wait()
}

func TestCheck_BrokenDevice_IsRefused(t *testing.T) {
	lane := func(b badLane) func(device.Store) broken {
		return func(s device.Store) broken {
			return broken{Store: s, lane: func(l device.Lane) device.Lane { b.Lane = l; return b }}
		}
	}
	for name, spoil := range map[string]func(device.Store) broken{
		"void voids nothing": func(s device.Store) broken { return broken{Store: s, void: func([]spec.PageID) error { return nil }} },
		"void leaves the last page": func(s device.Store) broken {
			return broken{Store: s, void: func(p []spec.PageID) error { return s.Void(p[:max(len(p), 1)-1]) }}
		},
		"void does what it can before it refuses": func(s device.Store) broken {
			return broken{Store: s, void: func(p []spec.PageID) error {
				for i := range p {
					if err := s.Void(p[i : i+1]); err != nil {
						return err
					}
				}
				return nil
			}}
		},
		"put leaves one out": func(s device.Store) broken {
			return broken{Store: s, put: func(x []device.SlotTag) error { return s.Put(x[min(len(x), 1):]) }}
		},
		"every tag is good": func(s device.Store) broken {
			return broken{Store: s, check: func(x []device.SlotTag) ([]spec.TagState, error) {
				if _, err := s.Check(x); err != nil {
					return nil, err
				}
				return make([]spec.TagState, len(x)), nil
			}}
		},
		"the generation is not compared": func(s device.Store) broken {
			return broken{Store: s, check: func(x []device.SlotTag) ([]spec.TagState, error) {
				states, err := s.Check(x)
				for i := range states {
					if t, _ := device.GetTag(x[i].Tag[:]); t.Gen%2 == 1 && states[i] == spec.TagForeign {
						states[i] = spec.TagGood
					}
				}
				return states, err
			}}
		},
		"digests are those of before": func(s device.Store) broken {
			var old []uint64
			return broken{Store: s, digest: func(x []device.PagePart) ([]uint64, error) {
				got, err := s.Digests(x)
				old, got = got, append(old, got...)[:len(got)]
				return got, err
			}}
		},
		"a copy takes a token more": func(s device.Store) broken {
			return broken{Store: s, copy: func(i uint32, from, to spec.PageID, n uint32) error {
				if n > 0 && s.CopyTokens(i, from, to, n+1) == nil {
					return nil
				}
				return s.CopyTokens(i, from, to, n)
			}}
		},
		"scrub leaves the tags": func(s device.Store) broken {
			return broken{Store: s, scrub: func(p []spec.PageID, with byte) error {
				for _, id := range p {
					for at := uint32(0); s.WritePage(id, at, []byte{with}) == nil; at++ {
					}
				}
				return s.Void(append([]spec.PageID(nil), p[:0]...))
			}}
		},
		"a part lands one page further": lane(badLane{land: func(l device.Lane, x []device.Landing) error {
			y := append([]device.Landing(nil), x...)
			for i := range y {
				y[i].Page++
			}
			if l.Land(y) == nil {
				return nil
			}
			return l.Land(x)
		}}),
		"a tag is stored whatever landed": lane(badLane{land: func(l device.Lane, x []device.Landing) error {
			y := append([]device.Landing(nil), x...)
			for i := range y {
				if t, s := device.GetTag(y[i].Tag[:]); s == spec.TagGood {
					t.HasDigest = false
					device.PutTag(y[i].Tag[:], t)
				}
			}
			return l.Land(y)
		}}),
		"a landing is left out": lane(badLane{land: func(l device.Lane, x []device.Landing) error { return l.Land(x[min(1, len(x)):]) }}),
		"wait does not wait":    lane(badLane{wait: func(device.Lane) ([]uint64, error) { return nil, nil }}),
		"fetch fetches the wrong page": lane(badLane{fetch: func(l device.Lane, x []device.Staged) error {
			y := append([]device.Staged(nil), x...)
			for i := range y {
				y[i].Page = 0
			}
			if l.Fetch(x) != nil {
				return l.Fetch(x)
			}
			_, _ = l.Wait()
			return l.Fetch(y)
		}}),
		"a fetch is put at the start": lane(badLane{fetch: func(l device.Lane, x []device.Staged) error {
			y := append([]device.Staged(nil), x...)
			for i := range y {
				y[i].At = 0
			}
			if l.Fetch(x) != nil {
				return l.Fetch(x)
			}
			_, _ = l.Wait()
			return l.Fetch(y)
		}}),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				if err := devicetest.Check(spoilt{device.NewHost(), spoil}, seed, steps); errors.Is(err, devicetest.ErrRule) {
					return
				}
			}
			t.Fatal("it passes")
		})
	}
}
