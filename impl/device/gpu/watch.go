//go:build cuda && cgo && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// watchedEvents are the events that say something of a card's memory or reach.
const watchedEvents = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeDramRetirementFailure |
	nvml.EventTypeNonFatalPoisonError | nvml.EventTypeFatalPoisonError | nvml.EventTypeGpuUnavailableError | nvml.EventTypeGpuRecoveryAction

// Watch tells of the card's faults until ctx ends (then it returns nil, late by one wait for an event) or the card cannot be seen any more: then the last
// fault that deliver got was KindLost or KindBlind, and the error wraps it. Faults that were found before (by an earlier Watch, or standing when this one
// starts) come first; each kind and code comes once, how often it was is in Faults. deliver is called by this goroutine only, must not
// wait for long, and may be called after ctx ended, but not after Watch returned.
//
// Xids come by events, which NVML has on Linux only; counters are polled. A card without events is polled alone and KindNoEvents says so: an
// Xid that no counter shows is then not seen.
func (c *Card) Watch(ctx context.Context, deliver func(Fault)) error {
	h, err := c.handle()
	if err != nil {
		return err
	}
	old, err := c.ledger.begin()
	if err != nil {
		return err
	}
	defer c.ledger.end()
	for _, f := range old {
		deliver(f)
	}
	w := watch{card: c, h: h, deliver: deliver}
	if err = w.run(ctx); err == nil {
		return nil
	}
	f := c.of(err)
	if f.Kind == KindReset {
		w.say(f)
		f = fault(c.info.UUID, KindBlind, 0, "%s", err)
	}
	w.say(f)
	return fmt.Errorf("%w: %w", f, err)
}

type watch struct {
	card    *Card
	h       handle
	deliver func(Fault)
	events  nvml.EventSet // nil: polled alone
	last    Health
}

// say delivers what is new. The end of a watch is always new.
func (w *watch) say(f Fault) {
	if w.card.ledger.add(f) || f.Kind == KindBlind || f.Kind == KindLost {
		w.deliver(f)
	}
}

// run registers for events before the first look, so that nothing falls between the two.
func (w *watch) run(ctx context.Context) (err error) {
	c := w.card
	if err := w.register(); err != nil {
		return err
	}
	if w.events != nil {
		defer func() { err = errors.Join(err, w.free()) }()
	}
	if w.last, err = c.Health(); err != nil {
		return err
	}
	for _, f := range standing(c.info.UUID, w.last) {
		w.say(f)
	}
	c.ledger.looked()
	due := time.NewTicker(c.all.set.every)
	defer due.Stop()
	for ctx.Err() == nil {
		if w.events == nil {
			select {
			case <-ctx.Done():
				return nil
			case <-due.C:
			}
			if err := w.poll(); err != nil {
				return err
			}
			continue
		}
		if err := w.event(); err != nil {
			return err
		}
		select {
		case <-due.C: // a flood of events must not keep the counters from being seen
			if err := w.poll(); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

func (w *watch) poll() error {
	now, err := w.card.Health()
	if err != nil {
		return err
	}
	for _, f := range changes(w.card.info.UUID, w.last, now) {
		w.say(f)
	}
	w.last = now
	return nil
}

// register leaves events nil for a card that has none.
func (w *watch) register() error {
	c := w.card
	for _, s := range []string{symEvents, symRegister, symEventSet, symEventWait, symEventFree} {
		if !c.all.syms.has[s] {
			w.say(fault(c.info.UUID, KindNoEvents, 0, "the library has no %s", s))
			return nil
		}
	}
	type found struct {
		set  nvml.EventSet
		what string
		ret  nvml.Return
		free nvml.Return
		xids bool
	}
	f, err := call(c.calls, 0, func() (f found) {
		ask := func(what string) { f.what = what; c.calls.step(what) }
		ask(symEvents)
		var has uint64
		if has, f.ret = w.h.GetSupportedEventTypes(); f.ret != nvml.SUCCESS {
			return f
		}
		f.xids = has&nvml.EventTypeXidCriticalError != 0
		if has &= watchedEvents; has == 0 {
			return f
		}
		ask(symEventSet)
		set, ret := c.all.lib.EventSetCreate()
		if f.ret = ret; ret != nvml.SUCCESS {
			return f
		}
		ask(symRegister)
		if f.ret = w.h.RegisterEvents(has, set); f.ret == nvml.SUCCESS {
			f.set = set
			return f
		}
		f.free = set.Free()
		return f
	})
	switch {
	case err != nil:
		return err
	case f.ret != nvml.SUCCESS && !absent(f.ret):
		return failed(f.what, f.ret)
	case f.free != nvml.SUCCESS:
		return failed(symEventFree, f.free)
	case f.ret != nvml.SUCCESS:
		w.say(fault(c.info.UUID, KindNoEvents, 0, "%s", failed(f.what, f.ret)))
	case !f.xids:
		w.say(fault(c.info.UUID, KindNoEvents, 0, "the card has no events for Xids"))
	}
	w.events = f.set
	return nil
}

// free gives the set back; if a wait hangs in it the set stays, since that call still uses it.
func (w *watch) free() error {
	c := w.card
	c.events.step(symEventFree)
	ret, err := call(c.events, 0, w.events.Free)
	if err != nil {
		return err
	}
	return failed(symEventFree, ret)
}

// event waits for one and says what it means.
func (w *watch) event() error {
	type found struct {
		e   nvml.EventData
		ret nvml.Return
	}
	c := w.card
	wait := c.all.set.wait
	c.events.step(symEventWait)
	f, err := call(c.events, wait, func() (f found) {
		f.e, f.ret = w.events.Wait(uint32(wait / time.Millisecond))
		return f
	})
	if err != nil {
		return err
	}
	switch f.ret {
	case nvml.ERROR_TIMEOUT:
		return nil
	case nvml.SUCCESS:
		return w.mean(f.e)
	}
	return failed(symEventWait, f.ret)
}

// mean says the fault of an event.
func (w *watch) mean(e nvml.EventData) error {
	uuid := w.card.info.UUID
	switch e.EventType {
	case nvml.EventTypeXidCriticalError:
		w.say(xidFault(uuid, e.EventData))
	case nvml.EventTypeDoubleBitEccError:
		w.say(fault(uuid, KindUncorrectable, 0, "the driver tells of an uncorrectable error"))
	case nvml.EventTypeDramRetirementFailure:
		w.say(fault(uuid, KindRemapFailed, 0, "the driver tells of a failed retirement"))
	case nvml.EventTypeNonFatalPoisonError, nvml.EventTypeFatalPoisonError:
		w.say(fault(uuid, KindPoison, e.EventType, "the driver tells of poisoned data"))
	case nvml.EventTypeGpuUnavailableError:
		w.say(fault(uuid, KindLost, 0, "the driver tells that the GPU is unavailable"))
	case nvml.EventTypeGpuRecoveryAction:
		return w.poll() // the field says which
	}
	return nil
}
