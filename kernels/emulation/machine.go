package emulation

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"kvfence/kernels"
)

// ErrKernel is wrapped by what a launch was refused for or did wrong.
var ErrKernel = errors.New("kernel")

// Machine is a running program: memory and launches. Its methods must not be called at the same time. The first error of the pipe is
// kept and returned by every call after it.
type Machine struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	w   *bufio.Writer
	out *bufio.Reader
	err error
}

// Counts is what a launch did; struct kvf_emu_counts.
type Counts struct{ Loads, WideLoads, Stores, WideStores, Late, Turns uint64 }

// Start runs a program that Program made. It ends with ctx or Close.
func Start(ctx context.Context, program string) (*Machine, error) {
	m := &Machine{cmd: exec.CommandContext(ctx, program)}
	m.cmd.Stderr = os.Stderr
	var err error
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.w, m.out = bufio.NewWriterSize(m.in, 1<<16), bufio.NewReaderSize(out, 1<<16)
	return m, m.cmd.Start()
}

// Close ends the program and waits for it.
func (m *Machine) Close() error {
	return errors.Join(m.w.Flush(), m.in.Close(), m.cmd.Wait())
}

func (m *Machine) put(vs ...any) {
	for _, v := range vs {
		if m.err != nil {
			return
		}
		switch v := v.(type) {
		case byte:
			m.err = m.w.WriteByte(v)
		case []byte:
			_, m.err = m.w.Write(v)
		case string:
			m.put(uint32(len(v)), []byte(v))
		default:
			m.err = binary.Write(m.w, binary.LittleEndian, v)
		}
	}
}

func (m *Machine) get(v any) {
	if m.err == nil {
		m.err = m.w.Flush()
	}
	if m.err == nil {
		m.err = binary.Read(m.out, binary.LittleEndian, v)
	}
}

func (m *Machine) text() string {
	var n uint32
	m.get(&n)
	if m.err != nil || n > 1<<20 {
		return ""
	}
	b := make([]byte, n)
	_, m.err = io.ReadFull(m.out, b)
	return string(b)
}

// Alloc is size bytes, of no particular content, at a multiple of 256 plus skew. Kernels may write there only if writable.
func (m *Machine) Alloc(size, skew uint64, writable bool) (a kernels.Addr, err error) {
	flags := uint32(0)
	if writable {
		flags = 1
	}
	m.put(byte('A'), max(size, 1), skew, flags)
	m.get(&a)
	return a, m.err
}

// Write stores b, which lies in memory that Alloc gave.
func (m *Machine) Write(a kernels.Addr, b []byte) error {
	m.put(byte('W'), uint64(a), uint64(len(b)), b)
	return m.err
}

// Read fills b.
func (m *Machine) Read(a kernels.Addr, b []byte) error {
	m.put(byte('R'), uint64(a), uint64(len(b)))
	if m.err == nil {
		m.err = m.w.Flush()
	}
	if m.err == nil {
		_, m.err = io.ReadFull(m.out, b)
	}
	return m.err
}

// Free takes back all memory and all watches.
func (m *Machine) Free() error {
	m.put(byte('F'))
	return m.err
}

// Watched is memory and what it must hold.
type Watched struct {
	At       kernels.Addr
	Expected []byte
}

// Watch fails any later launch in which a store into [trigger, trigger+n) becomes visible before all of data is as expected and, with
// system, visible to the host.
func (m *Machine) Watch(trigger kernels.Addr, n uint64, system bool, data ...Watched) error {
	s := uint32(0)
	if system {
		s = 1
	}
	m.put(byte('O'), uint64(trigger), n, s, uint32(len(data)))
	for _, d := range data {
		m.put(uint64(d.At), uint64(len(d.Expected)), d.Expected)
	}
	return m.err
}

// Unwatch ends all watches.
func (m *Machine) Unwatch() error {
	m.put(byte('U'))
	return m.err
}

// Launch runs a kernel with grid blocks to its end. args is its struct. seed decides the schedule.
func (m *Machine) Launch(name string, grid uint32, args any, seed uint64) (Counts, error) {
	b, err := binary.Append(nil, binary.LittleEndian, args)
	if err != nil {
		return Counts{}, err
	}
	m.put(byte('L'), name, grid, seed, string(b))
	text := m.text()
	var c Counts
	m.get(&c)
	switch {
	case m.err != nil:
		return c, fmt.Errorf("emulation: %w", m.err)
	case text != "":
		return c, fmt.Errorf("%w: %s", ErrKernel, text)
	}
	return c, nil
}

// Row is a struct of abi.h, or a field of it.
type Row struct {
	Type, Field  string
	Offset, Size uint32
}

// Table lists what abi.h has.
func (m *Machine) Table() ([]Row, error) {
	m.put(byte('T'))
	var n uint32
	m.get(&n)
	var rows []Row
	for i := uint32(0); i < n && m.err == nil; i++ {
		r := Row{Type: m.text(), Field: m.text()}
		m.get(&r.Offset)
		m.get(&r.Size)
		rows = append(rows, r)
	}
	return rows, m.err
}

// Warp is the lanes of a warp.
func (m *Machine) Warp() (w uint32, err error) {
	m.put(byte('G'))
	m.get(&w)
	return w, m.err
}
