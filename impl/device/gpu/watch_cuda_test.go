//go:build cuda && cgo && linux

package gpu

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// watchCard watches until the test ends.
func watchCard(t *testing.T, c *Card) *watched {
	ctx, stop := context.WithCancel(t.Context())
	w := &watched{t: t, faults: make(chan Fault, 1024), done: make(chan error, 1), stop: stop}
	go func() { w.done <- c.Watch(ctx, func(f Fault) { w.faults <- f }) }()
	t.Cleanup(stop)
	return w
}

// readyCard is a card of a rig that is being watched and has been looked at.
func readyCard(t *testing.T, r *rig, set settings) (*Card, *watched) {
	c := r.open(t, set)
	card := c.List()[0]
	require.ErrorIs(t, card.Ready(), ErrUnusable, "nobody watches")
	w := watchCard(t, card)
	require.Eventually(t, func() bool { return card.Ready() == nil }, 20*time.Second, time.Millisecond)
	return card, w
}

func xid(n uint64) answer {
	return answer{nvml.EventData{EventType: nvml.EventTypeXidCriticalError, EventData: n}, nvml.SUCCESS}
}

func event(kind uint64) answer { return answer{nvml.EventData{EventType: kind}, nvml.SUCCESS} }

func TestWatch_EachFault_IsDeliveredWithItsAction(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*ill)
		kind Kind
		code uint64
		want Action
	}{
		"fatal Xid":              {func(i *ill) { i.event <- xid(95) }, KindXid, 95, Fence},
		"unknown Xid":            {func(i *ill) { i.event <- xid(4711) }, KindXid, 4711, Fence},
		"Xid of a process":       {func(i *ill) { i.event <- xid(31) }, KindXid, 31, Report},
		"double bit event":       {func(i *ill) { i.event <- event(nvml.EventTypeDoubleBitEccError) }, KindUncorrectable, 0, Fence},
		"retirement failed":      {func(i *ill) { i.event <- event(nvml.EventTypeDramRetirementFailure) }, KindRemapFailed, 0, Fence},
		"poison":                 {func(i *ill) { i.event <- event(nvml.EventTypeFatalPoisonError) }, KindPoison, nvml.EventTypeFatalPoisonError, Fence},
		"contained poison":       {func(i *ill) { i.event <- event(nvml.EventTypeNonFatalPoisonError) }, KindPoison, nvml.EventTypeNonFatalPoisonError, Fence},
		"unavailable":            {func(i *ill) { i.event <- event(nvml.EventTypeGpuUnavailableError) }, KindLost, 0, Fence},
		"reset wanted, by event": {func(i *ill) { i.h.Recovery.N = 1; i.event <- event(nvml.EventTypeGpuRecoveryAction) }, KindReset, 1, Fence},
		"uncorrectable count":    {func(i *ill) { i.h.Uncorrectable.N = 1 }, KindUncorrectable, 1, Fence},
		"remap failed":           {func(i *ill) { i.h.RemapFailed.N = 1 }, KindRemapFailed, 0, Fence},
		"remap pending":          {func(i *ill) { i.h.RemapPending.N = 1 }, KindRemapPending, 0, Refuse},
		"retire pending":         {func(i *ill) { i.h.RetirePending.N = 1 }, KindRetirePending, 0, Refuse},
		"drain peers":            {func(i *ill) { i.h.Recovery.N = recoveryDrain }, KindReset, recoveryDrain, Refuse},
		"link down":              {func(i *ill) { i.h.Links[7].Up = false }, KindLinkDown, 7, Refuse},
		"link errors":            {func(i *ill) { i.h.Links[7].Errors[2]++ }, KindLinkErrors, 7, Report},
	} {
		t.Run(name, func(t *testing.T) {
			r := dgx(t)
			card, w := readyCard(t, r, patient())
			r.cards[0].set(c.do)
			f := w.next()
			require.Equal(t, c.kind, f.Kind)
			require.Equal(t, c.code, f.Code)
			require.Equal(t, c.want, f.Action())
			require.Equal(t, c.want == Fence, f.Fatal)
			require.Equal(t, card.Info().UUID, f.UUID)
			if c.want == Report {
				require.NoError(t, card.Ready())
			} else {
				require.ErrorIs(t, card.Ready(), f)
			}
			w.stop()
			require.NoError(t, w.end())
			require.Len(t, r.frees, 1, "the event set is given back")
			require.Equal(t, []Fault{f}, []Fault{card.Faults()[0].Fault})
		})
	}
}

func TestWatch_FaultIsSticky_AndComesOnce(t *testing.T) {
	r := dgx(t)
	r.cards[0].h.Uncorrectable.N = 3 // before this process
	c := r.open(t, patient())
	card := c.List()[0]
	w := watchCard(t, card)
	require.Equal(t, KindUncorrectable, w.next().Kind)
	for range 3 {
		r.cards[0].event <- xid(95)
	}
	require.EqualValues(t, 95, w.next().Code)
	require.Eventually(t, func() bool { s := card.Faults(); return len(s) == 2 && s[1].Times == 3 }, 20*time.Second, time.Millisecond)
	r.cards[0].set(func(i *ill) { i.h.Uncorrectable.N = 0 }) // someone cleared it
	require.Equal(t, KindReset, w.next().Kind)
	w.stop()
	require.NoError(t, w.end())
	require.Empty(t, w.faults)
	require.ErrorIs(t, card.Ready(), ErrFault)

	again := watchCard(t, card)
	for _, k := range []Kind{KindUncorrectable, KindXid, KindReset} {
		require.Equal(t, k, again.next().Kind, "a new watcher learns what was")
	}
	require.ErrorIs(t, card.Ready(), ErrFault)
	again.stop()
	require.NoError(t, again.end())
}

func TestWatch_GPULost_EndsIt(t *testing.T) {
	for name, lose := range map[string]func(*ill){
		"seen by an event wait": func(i *ill) { i.event <- answer{nvml.EventData{}, nvml.ERROR_GPU_IS_LOST} },
		"seen by a poll":        func(i *ill) { i.ret[symRemapped] = nvml.ERROR_GPU_IS_LOST },
		"not found any more":    func(i *ill) { i.ret[symECC] = nvml.ERROR_GPU_NOT_FOUND },
	} {
		t.Run(name, func(t *testing.T) {
			r := dgx(t)
			card, w := readyCard(t, r, patient())
			r.cards[0].set(lose)
			f := w.next()
			require.Equal(t, KindLost, f.Kind)
			require.True(t, f.Fatal)
			err := w.end()
			require.ErrorIs(t, err, f)
			require.ErrorIs(t, err, ErrCall)
			require.Len(t, r.frees, 1)
			require.ErrorIs(t, card.Ready(), f, "for good")
		})
	}
}

func TestWatch_ResetRequired_IsFatalAndEndsIt(t *testing.T) {
	r := dgx(t)
	_, w := readyCard(t, r, patient())
	r.cards[0].set(func(i *ill) { i.ret[symECC] = nvml.ERROR_RESET_REQUIRED })
	f := w.next()
	require.Equal(t, KindReset, f.Kind)
	require.True(t, f.Fatal)
	require.Equal(t, KindBlind, w.next().Kind)
	require.Error(t, w.end())
}

func TestWatch_CannotSee_IsAFaultOfItsOwn(t *testing.T) {
	for name, c := range map[string]func(*ill){
		"poll fails":     func(i *ill) { i.ret[symLink] = nvml.ERROR_UNKNOWN },
		"wait fails":     func(i *ill) { i.ret[symEventWait] = nvml.ERROR_UNKNOWN },
		"driver is gone": func(i *ill) { i.ret[symECC] = nvml.ERROR_DRIVER_NOT_LOADED },
	} {
		t.Run(name, func(t *testing.T) {
			r := dgx(t)
			card, w := readyCard(t, r, patient())
			r.cards[0].set(c)
			f := w.next()
			require.Equal(t, KindBlind, f.Kind)
			require.Equal(t, Refuse, f.Action())
			require.ErrorIs(t, w.end(), f)
			require.ErrorIs(t, card.Ready(), ErrUnusable)
			r.cards[0].set(func(i *ill) { clear(i.ret) })
			again := watchCard(t, card)
			require.Eventually(t, func() bool { return card.Ready() == nil }, 20*time.Second, time.Millisecond, "who sees again may lease again")
			again.stop()
			require.NoError(t, again.end())
			require.Empty(t, again.faults)
			require.Equal(t, KindBlind, card.Faults()[0].Kind, "it is counted")
		})
	}
}

func TestWatch_CannotBegin_SaysWhy(t *testing.T) {
	for _, symbol := range []string{symEvents, symRegister, symECC} {
		r := dgx(t)
		r.cards[0].ret[symbol] = nvml.ERROR_UNKNOWN
		c := r.open(t, patient())
		w := watchCard(t, c.List()[0])
		require.Equal(t, KindBlind, w.next().Kind)
		require.ErrorContains(t, w.end(), symbol)
		require.ErrorIs(t, c.List()[0].Ready(), ErrUnusable)
		if symbol != symEvents {
			require.Len(t, r.frees, 1, symbol)
		}
	}
}

func TestWatch_HungCalls_AreBounded(t *testing.T) {
	for _, symbol := range []string{symECC, symEventWait} {
		t.Run(symbol, func(t *testing.T) {
			r := dgx(t)
			card, w := readyCard(t, r, quick())
			hang := make(chan struct{})
			r.cards[0].set(func(i *ill) { i.hang[symbol] = hang })
			f := w.next()
			require.Equal(t, KindBlind, f.Kind)
			require.Contains(t, f.Detail, symbol)
			require.ErrorIs(t, w.end(), ErrHung)
			require.ErrorIs(t, card.Ready(), ErrUnusable)
			if symbol == symEventWait {
				require.Empty(t, r.frees, "not under a wait")
			}
			r.cards[0].set(func(i *ill) { clear(i.hang) })
			close(hang)
		})
	}
}

// A consumer card has none of it: no ECC, no rows to remap, no NVLink, no events.
func TestWatch_ConsumerCard_IsReadyAndSaysThatNoXidsAreSeen(t *testing.T) {
	r := dgx(t)
	for _, s := range want {
		r.cards[0].ret[s] = nvml.ERROR_NOT_SUPPORTED
	}
	card, w := readyCard(t, r, patient())
	f := w.next()
	require.Equal(t, KindNoEvents, f.Kind)
	require.Equal(t, Report, f.Action())
	h, err := card.Health()
	require.NoError(t, err)
	require.Equal(t, Health{}, h)
	require.Equal(t, "ECC not known, uncorrectable not known, corrected not known, remap pending not known, remap failed not known, NVLinks up 0 of 0", h.Text())
	r.cards[0].set(func(i *ill) { i.ret[symECC] = nvml.ERROR_GPU_IS_LOST })
	require.Equal(t, KindLost, w.next().Kind, "but it is polled")
	require.Error(t, w.end())
}

func TestWatch_NoXidsAmongTheEvents_IsSaid(t *testing.T) {
	r := dgx(t)
	r.cards[0].types = nvml.EventTypeDoubleBitEccError
	card, w := readyCard(t, r, patient())
	require.Equal(t, KindNoEvents, w.next().Kind)
	r.cards[0].event <- event(nvml.EventTypeDoubleBitEccError)
	require.Equal(t, KindUncorrectable, w.next().Kind)
	require.Error(t, card.Ready())
}

func TestWatch_FloodOfEvents_DoesNotHideTheCounters(t *testing.T) {
	r := dgx(t)
	_, w := readyCard(t, r, patient())
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case r.cards[0].event <- xid(31):
			case <-stop:
				return
			}
		}
	}()
	require.EqualValues(t, 31, w.next().Code)
	r.cards[0].set(func(i *ill) { i.h.RemapFailed.N = 1 })
	require.Equal(t, KindRemapFailed, w.next().Kind)
	close(stop)
	<-done
	w.stop()
	require.NoError(t, w.end())
}

func TestWatch_FirstLook_ComesBeforeReady(t *testing.T) {
	r := dgx(t)
	hang := make(chan struct{})
	r.cards[0].hang[symECC], r.cards[0].h.RemapPending.N = hang, 1
	set := patient()
	set.every = time.Hour // what the first look does not see, nothing sees
	card := r.open(t, set).List()[0]
	w := watchCard(t, card)
	require.Eventually(t, func() bool { return card.calls.where() == symECC }, 20*time.Second, time.Millisecond)
	require.ErrorIs(t, card.Ready(), errUnwatched, "nothing was seen yet")
	close(hang)
	require.Equal(t, KindRemapPending, w.next().Kind)
	require.ErrorIs(t, card.Ready(), ErrFault)
	w.stop()
	require.NoError(t, w.end())
}

func TestWatch_WhatAUserMayNotSee_IsNoFault(t *testing.T) {
	r := dgx(t)
	r.cards[0].ret[symRemapped], r.cards[0].ret[symECC] = nvml.ERROR_NO_PERMISSION, nvml.ERROR_NO_PERMISSION
	card, w := readyCard(t, r, patient())
	h, err := card.Health()
	require.NoError(t, err)
	require.False(t, h.Uncorrectable.Known)
	w.stop()
	require.NoError(t, w.end())
}

func TestWatch_SecondOne_IsRefused(t *testing.T) {
	r := dgx(t)
	card, w := readyCard(t, r, patient())
	require.ErrorIs(t, card.Watch(t.Context(), nil), ErrWatched)
	require.NoError(t, card.Ready())
	w.stop()
	require.NoError(t, w.end())
	require.ErrorIs(t, card.Ready(), errUnwatched)
}

func TestWatch_AllCards_BesideAllOtherCalls(t *testing.T) {
	r := dgx(t)
	c := r.open(t, patient())
	var ws []*watched
	for _, card := range c.List() {
		ws = append(ws, watchCard(t, card))
	}
	var all sync.WaitGroup
	for i, card := range c.List() {
		all.Go(func() {
			for range 20 {
				_, err := card.Memory()
				assert.NoError(t, err)
				_, err = card.Health()
				assert.NoError(t, err)
				_, err = card.Place("/sys")
				assert.NoError(t, err)
				_, _ = card.Ready(), card.Faults()
				r.cards[i].event <- xid(31)
			}
		})
	}
	all.Wait()
	for i, w := range ws {
		require.EqualValues(t, 31, w.next().Code)
		w.stop()
		require.NoError(t, w.end())
		require.Equal(t, 1, r.cards[i].sets)
	}
	require.Len(t, r.frees, 8)
	require.NoError(t, c.Close())
	require.Len(t, r.ShutdownCalls(), 1)
}
