//go:build cuda && cgo && linux

package gpu

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// settings are times; tests have shorter ones.
type settings struct {
	limit time.Duration // one call, or all calls of one look at a card
	wait  time.Duration // how long the library may wait for an event: Watch ends this late at most
	every time.Duration // between two looks
}

// Cards are the NVIDIA cards of this machine. Safe for concurrent use.
type Cards struct {
	lib      library
	syms     symbols
	set      settings
	calls    *caller // of no single card
	versions Versions
	cards    []*Card
	closing  sync.Once
	closed   error
}

// Card is one of them. Safe for concurrent use.
type Card struct {
	all    *Cards
	dev    nvml.Device // nil if the library did not give it
	info   Info
	bad    error // why it cannot be used, found at Open
	calls  *caller
	events *caller // waiting for an event must not keep others
	ledger ledger
}

// Open finds the cards. A machine that has the library and no card has none; a card that cannot be asked is listed with the reason (Usable).
func Open() (*Cards, error) {
	return open(nvml.New(), settings{limit: 5 * time.Second, wait: 250 * time.Millisecond, every: 2 * time.Second})
}

func open(lib library, set settings) (*Cards, error) {
	c := &Cards{lib: lib, set: set, calls: newCaller(set.limit)}
	type found struct {
		syms    symbols
		missing string
		init    nvml.Return
	}
	c.calls.step("nvmlInit")
	f, err := call(c.calls, 0, func() (f found) {
		if f.init = lib.Init(); f.init == nvml.SUCCESS {
			f.syms, f.missing = lookUp(lib.Extensions())
		}
		return f
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoLibrary, err)
	case f.init == nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("%w: libnvidia-ml.so.1 is not there: it comes with NVIDIA's driver (in a container: with the NVIDIA container toolkit)", ErrNoLibrary)
	case f.init != nvml.SUCCESS:
		return nil, fmt.Errorf("%w: %w", ErrNoLibrary, failed("nvmlInit", f.init))
	case f.missing != "":
		return nil, errors.Join(fmt.Errorf("%w: it has no %s: the driver is too old", ErrNoLibrary, f.missing), c.Close())
	}
	c.syms = f.syms
	if err := c.discover(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoLibrary, err), c.Close())
	}
	return c, nil
}

func (c *Cards) discover() error {
	type found struct {
		v    Versions
		n    int
		what string
		ret  nvml.Return
	}
	f, err := call(c.calls, 0, func() (f found) {
		ask := func(what string) { f.what = what; c.calls.step(what) }
		ask("nvmlSystemGetDriverVersion")
		if f.v.Driver, f.ret = c.lib.SystemGetDriverVersion(); f.ret != nvml.SUCCESS {
			return f
		}
		ask("nvmlSystemGetNVMLVersion")
		if f.v.NVML, f.ret = c.lib.SystemGetNVMLVersion(); f.ret != nvml.SUCCESS {
			return f
		}
		ask("nvmlSystemGetCudaDriverVersion")
		var cuda int
		if cuda, f.ret = c.lib.SystemGetCudaDriverVersion(); f.ret != nvml.SUCCESS {
			return f
		}
		f.v = Versions{printable(f.v.Driver), printable(f.v.NVML), fmt.Sprintf("%d.%d", cuda/1000, cuda%1000/10)}
		ask("nvmlDeviceGetCount")
		f.n, f.ret = c.lib.DeviceGetCount()
		return f
	})
	if err == nil {
		err = failed(f.what, f.ret)
	}
	if err != nil {
		return err
	}
	c.versions = f.v
	for i := range f.n {
		c.cards = append(c.cards, c.card(i))
	}
	return nil
}

// Close ends the use of the library, after all Watches have. If a call hangs the library stays open: to close it under a call would be worse.
func (c *Cards) Close() error {
	c.closing.Do(func() {
		idle := c.calls.idle()
		for _, card := range c.cards {
			idle = card.calls.idle() && card.events.idle() && idle
		}
		if !idle {
			c.closed = fmt.Errorf("%w: it stays open until the process ends", ErrHung)
			return
		}
		c.closed = failed("nvmlShutdown", c.lib.Shutdown())
	})
	return c.closed
}

// Versions are those found at Open.
func (c *Cards) Versions() Versions { return c.versions }

// List is all cards by index, those that cannot be used as well. The list is the caller's.
func (c *Cards) List() []*Card { return append([]*Card(nil), c.cards...) }
