package node

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/device/devicetest"
	"kvfence/impl/node/api"
	"kvfence/spec"
)

// ranksOn is a shape of more than one rank at either end.
func ranksOn(prefill, decode int) func(*config.Config) {
	return func(c *config.Config) { c.Prefill.Ranks, c.Decode.Ranks = prefill, decode }
}

// Pools on a device at either end or both: every answer is exact, and every page comes back.
func TestDevice_PoolsOnEitherSide_AnswersAreExact(t *testing.T) {
	for i, on := range [][2]bool{{false, true}, {true, false}, {true, true}} {
		for _, ranks := range [][2]int{{1, 1}, {2, 2}} {
			t.Run(fmt.Sprintf("%v %v", on, ranks), func(t *testing.T) {
				var ds [2]device.Device
				for k := range ds {
					if on[k] {
						ds[k] = devicetest.NewOpaque(uint64(10*i + k))
					}
				}
				p := startPairOn(t, ds[0], ds[1], ranksOn(ranks[0], ranks[1]))
				var wg sync.WaitGroup
				for n := range 8 {
					wg.Go(func() { p.check(testRequest(3+n*17, int32(n), 1+n*3)) })
				}
				wg.Wait()
				p.idle()
			})
		}
	}
}

// A tag that changes on decode's device is found before the next token leaves.
func TestDevice_TagOfAPageChanges_TokenDoesNotLeave(t *testing.T) {
	p := startPairOn(t, nil, devicetest.NewOpaque(4), nil)
	r := p.decode.decode.ranks[0]
	var once sync.Once
	require.True(t, p.decode.decode.loop.call(func() {
		act := r.host.act
		r.host.act = func(a core.Action) error {
			if x, is := a.(core.ReadPages); is {
				once.Do(func() {
					under := devicetest.Beneath(r.mem[spec.KV])
					under.Slot(x.Pages[spec.KV][0].Page, 0)[0] ^= 1
				})
			}
			return act(a)
		}
	}))
	_, _, err := p.answer(testRequest(30, 1, 5))
	require.Equal(t, api.KVMismatch, api.CodeOf(err), "%v", err)
	p.check(testRequest(30, 2, 5))
}

// A call that the device refuses, with nothing done, fails what it was for, and no more.
func TestDevice_CallIsRefused_RequestFailsAndTheNodeGoesOn(t *testing.T) {
	refused := errors.New("the driver refuses")
	for _, call := range []string{"Check", "Land", "Wait", "ReadPage", "WritePage"} {
		t.Run(call, func(t *testing.T) {
			o := devicetest.NewOpaque(7)
			p := startPairOn(t, nil, o, nil)
			p.check(testRequest(20, 1, 3))
			var once sync.Once
			o.FailOn(func(op string) (err error) {
				if op == call {
					once.Do(func() { err = refused })
				}
				return err
			})
			tokens, _, err := p.answer(testRequest(40, 2, 5))
			if err == nil { // it came again, as a new transfer
				require.Equal(t, p.oracle(testRequest(40, 2, 5)).Tokens, tokens)
			}
			require.Positive(t, o.Calls(call))
			p.ready()
			p.check(testRequest(20, 3, 3))
		})
	}
}

// A device that is lost, at any of its calls, ends its node: no answer is wrong, none is good behind it, and no page of it comes back.
func TestDevice_IsLost_NodeStopsAndNothingIsReused(t *testing.T) {
	for _, call := range []string{"Void", "Land", "Wait", "Put", "Check", "ReadPage", "Lane"} {
		t.Run(call, func(t *testing.T) {
			o := devicetest.NewOpaque(8)
			p := startPairOn(t, nil, o, nil)
			if call != "Lane" { // which a link asks for once
				p.check(testRequest(20, 1, 3))
			}
			o.FailOn(func(op string) error {
				if op == call {
					return fmt.Errorf("%w: an error that sticks", device.ErrLost)
				}
				return nil
			})
			tokens, _, err := p.answer(testRequest(40, 2, 30))
			require.Error(t, err)
			if len(tokens) > 0 {
				require.Equal(t, p.oracle(testRequest(40, 2, 30)).Tokens[:len(tokens)], tokens)
			}
			<-p.decode.Stopped()
			require.ErrorIs(t, p.decode.Err(), ErrStopped)
			require.ErrorContains(t, p.decode.Err(), "device is lost")
			_, _, err = p.answer(testRequest(10, 3, 2))
			require.Error(t, err)
		})
	}
}

// A card's health is heard of elsewhere: Fail ends the node, also when nothing runs.
func TestDevice_FailsFromOutside_NodeStops(t *testing.T) {
	o := devicetest.NewOpaque(9)
	p := startPairOn(t, o, nil, nil)
	p.check(testRequest(20, 1, 3))
	o.Fail(errors.New("an uncorrectable error"))
	select {
	case <-p.prefill.Stopped():
	case <-time.After(patience):
		t.Fatal("the node goes on")
	}
	require.ErrorContains(t, p.prefill.Err(), "an uncorrectable error")
	require.Contains(t, p.prefill.Status(t.Context()).Stopped, "an uncorrectable error")
}

// Transports that need pages which the host can address refuse others at the start.
func TestDevice_TransportNeedsHostMemory_IsRefused(t *testing.T) {
	for _, kind := range []string{"shm", "verbs"} {
		_, err := StartOn(devicetest.NewOpaque(1), small(t, config.RolePrefill, func(c *config.Config) { c.Transport.Kind = kind }), testLog(t))
		require.ErrorIs(t, err, ErrDevice)
		require.ErrorContains(t, err, kind)
	}
}
