package devicetest

import (
	"errors"
	"math/rand/v2"
	"sync"

	"kvfence/impl/device"
	"kvfence/spec"
)

// Opaque is a device whose pools the host cannot address, on host memory: what a node does by device.Store alone can be tested with it, without a
// GPU. What a lane is told happens late: some of it when Wait is called, some of it, in random order, whenever anything else is.
type Opaque struct {
	host device.Device

	mu    sync.Mutex
	r     *rand.Rand
	late  []*opaqueLane
	fails func(op string) error
	ops   map[string]int
}

// NewOpaque makes one; seed decides how late what happens.
func NewOpaque(seed uint64) *Opaque {
	return &Opaque{host: device.NewHost(), r: rand.New(rand.NewPCG(seed, 12)), ops: map[string]int{}}
}

// Name implements device.Device.
func (*Opaque) Name() string { return "opaque" }

// Err implements device.Device.
func (o *Opaque) Err() error { return o.host.Err() }

// Lost implements device.Device.
func (o *Opaque) Lost() <-chan struct{} { return o.host.Lost() }

// Fail implements device.Device.
func (o *Opaque) Fail(cause error) { o.host.Fail(cause) }

// Close implements device.Device.
func (o *Opaque) Close() error { return o.host.Close() }

// FailOn has f asked before each call of a store or lane, by name; what it returns is the call's error, and one that wraps device.ErrLost loses the device.
func (o *Opaque) FailOn(f func(op string) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails = f
}

// Calls is how often a call was made.
func (o *Opaque) Calls(op string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ops[op]
}

// NewPool implements device.Device.
func (o *Opaque) NewPool(l spec.Layout) (*device.Pool, error) {
	p, err := o.host.NewPool(l)
	if err != nil {
		return nil, err
	}
	return o.Over(p), nil
}

// Over makes a pool of the device of memory that a test can look at.
func (o *Opaque) Over(p *device.Pool) *device.Pool {
	return &device.Pool{Layout: p.Layout, Store: opaqueStore{o, p, p.Store}}
}

// Beneath is the memory of a pool of an Opaque.
func Beneath(p *device.Pool) *device.Pool { return p.Store.(opaqueStore).p }

// step is asked before each call: some late work is done now.
func (o *Opaque) step(op string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ops[op]++
	if err := o.host.Err(); err != nil {
		return err
	}
	if o.fails != nil {
		if err := o.fails(op); err != nil {
			if errors.Is(err, device.ErrLost) {
				o.host.Fail(err)
			}
			return err
		}
	}
	for i := 0; i < len(o.late); i++ {
		if o.r.IntN(2) == 0 {
			o.late[i].run()
			o.late = append(o.late[:i], o.late[i+1:]...)
			i--
		}
	}
	return nil
}

type opaqueStore struct {
	o *Opaque
	p *device.Pool // in host memory
	s device.Store
}

func (s opaqueStore) Void(p []spec.PageID) error {
	if err := s.o.step("Void"); err != nil {
		return err
	}
	return s.s.Void(p)
}

func (s opaqueStore) Put(x []device.SlotTag) error {
	if err := s.o.step("Put"); err != nil {
		return err
	}
	return s.s.Put(x)
}

func (s opaqueStore) Check(x []device.SlotTag) ([]spec.TagState, error) {
	if err := s.o.step("Check"); err != nil {
		return nil, err
	}
	return s.s.Check(x)
}

func (s opaqueStore) Digests(x []device.PagePart) ([]uint64, error) {
	if err := s.o.step("Digests"); err != nil {
		return nil, err
	}
	return s.s.Digests(x)
}

func (s opaqueStore) CopyTokens(i uint32, from, to spec.PageID, n uint32) error {
	if err := s.o.step("CopyTokens"); err != nil {
		return err
	}
	return s.s.CopyTokens(i, from, to, n)
}

func (s opaqueStore) ReadPage(id spec.PageID, at uint32, into []byte) error {
	if err := s.o.step("ReadPage"); err != nil {
		return err
	}
	return s.s.ReadPage(id, at, into)
}

func (s opaqueStore) WritePage(id spec.PageID, at uint32, from []byte) error {
	if err := s.o.step("WritePage"); err != nil {
		return err
	}
	return s.s.WritePage(id, at, from)
}

func (s opaqueStore) Scrub(p []spec.PageID, with byte) error {
	if err := s.o.step("Scrub"); err != nil {
		return err
	}
	return s.s.Scrub(p, with)
}

func (s opaqueStore) Lane(n int) (device.Lane, error) {
	if err := s.o.step("Lane"); err != nil {
		return nil, err
	}
	l, err := s.s.Lane(n)
	if err != nil {
		return nil, err
	}
	return &opaqueLane{o: s.o, p: s.p, l: l}, nil
}

// opaqueLane checks what it is told at once and does it late.
type opaqueLane struct {
	o *Opaque
	p *device.Pool
	l device.Lane

	do      func() error // what was told and is not done
	busy    bool
	digests []uint64
	err     error
}

// errBusy breaks the contract of a lane: one operation at a time.
var errBusy = errors.New("an operation of the lane has not been waited for")

func (l *opaqueLane) Staging() []byte { return l.l.Staging() }

// run does it; with o.mu held.
func (l *opaqueLane) run() {
	if l.do == nil {
		return
	}
	if l.err = l.do(); l.err == nil {
		l.digests, l.err = l.l.Wait()
	}
	l.do = nil
}

func (l *opaqueLane) begin(op string, empty, do func() error) error {
	if l.busy {
		return errBusy
	}
	if err := l.o.step(op); err != nil {
		return err
	}
	if err := empty(); err != nil {
		return err
	}
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	l.busy, l.do = true, do
	l.o.late = append(l.o.late, l)
	return nil
}

func (l *opaqueLane) Land(items []device.Landing) error {
	own := append([]device.Landing(nil), items...)
	return l.begin("Land", func() error {
		for i := range own {
			if err := l.p.CheckSlots([]device.SlotTag{{Page: own[i].Page, Slot: own[i].Slot}}); err != nil {
				return err
			}
			if _, err := l.p.CheckStaged(own[i].Staged, len(l.Staging())); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return l.l.Land(own) })
}

func (l *opaqueLane) Fetch(items []device.Staged) error {
	own := append([]device.Staged(nil), items...)
	return l.begin("Fetch", func() error {
		for i := range own {
			if _, err := l.p.CheckStaged(own[i], len(l.Staging())); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return l.l.Fetch(own) })
}

func (l *opaqueLane) Wait() ([]uint64, error) {
	if err := l.o.step("Wait"); err != nil {
		return nil, err
	}
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	l.run()
	l.busy = false
	return l.digests, l.err
}

func (l *opaqueLane) Close() error {
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	l.run()
	return l.l.Close()
}
