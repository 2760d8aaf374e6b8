package explore

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A run is a file of records in the order of their keys: a key of so many words, and a link if it has links. Runs written before
// the layout grew have shorter keys; what is missing is zero, and that keeps the order.

const fileBuffer = 32 << 10

type runFile struct {
	path   string
	stride int
	links  bool
	n      int
}

func (f runFile) words() int {
	if f.links {
		return f.stride + 1
	}
	return f.stride
}

// compareKeys orders keys, of which one may be the shorter.
func compareKeys(a, b []uint64) int {
	n := min(len(a), len(b))
	if c := slices.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	for _, w := range a[n:] {
		if w != 0 {
			return 1
		}
	}
	for _, w := range b[n:] {
		if w != 0 {
			return -1
		}
	}
	return 0
}

type runWriter struct {
	runFile
	file *os.File
	w    *bufio.Writer
	raw  []byte
}

func newRunWriter(path string, stride int, links bool) (*runWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &runWriter{runFile: runFile{path: path, stride: stride, links: links}, file: f, w: bufio.NewWriterSize(f, fileBuffer)}, nil
}

func (w *runWriter) add(key []uint64, link uint64) error {
	w.raw = w.raw[:0]
	for i := range w.stride {
		var k uint64
		if i < len(key) {
			k = key[i]
		}
		w.raw = binary.LittleEndian.AppendUint64(w.raw, k)
	}
	if w.links {
		w.raw = binary.LittleEndian.AppendUint64(w.raw, link)
	}
	w.n++
	_, err := w.w.Write(w.raw)
	return err
}

func (w *runWriter) close() (runFile, error) {
	return w.runFile, errors.Join(w.w.Flush(), w.file.Close())
}

// runReader stands at a record, or behind the last one.
type runReader struct {
	runFile
	file *os.File
	r    *bufio.Reader
	raw  []byte
	left int
	key  []uint64
	link uint64
	done bool
}

func (f runFile) open() (*runReader, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	r := &runReader{runFile: f, file: file, r: bufio.NewReaderSize(file, fileBuffer), raw: make([]byte, 8*f.words()), key: make([]uint64, f.stride), left: f.n}
	if err := r.next(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

// next goes on to the next record.
func (r *runReader) next() error {
	if r.left == 0 {
		r.done = true
		return nil
	}
	r.left--
	if _, err := io.ReadFull(r.r, r.raw); err != nil {
		return fmt.Errorf("%w: %s ends %d records early: %w", ErrRuns, filepath.Base(r.path), r.left+1, err)
	}
	r.take()
	return nil
}

func (r *runReader) take() {
	for i := range r.key {
		r.key[i] = binary.LittleEndian.Uint64(r.raw[8*i:])
	}
	if r.links {
		r.link = binary.LittleEndian.Uint64(r.raw[8*r.stride:])
	}
}

// record reads one record by its number.
func (f runFile) record(n int) (key []uint64, link uint64, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, 0, err
	}
	r := &runReader{runFile: f, raw: make([]byte, 8*f.words()), key: make([]uint64, f.stride)}
	if _, err := file.ReadAt(r.raw, int64(n)*int64(len(r.raw))); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%w: record %d of %s: %w", ErrRuns, n, filepath.Base(f.path), err), file.Close())
	}
	r.take()
	return r.key, r.link, file.Close()
}

// merged reads several runs as one. Of equal keys it gives the one of the run that was named first.
type merged struct {
	heap []mergeItem // the least on top
	all  []*runReader
}

type mergeItem struct {
	r    *runReader
	rank int
}

func (a mergeItem) compare(b mergeItem) int {
	return cmp.Or(compareKeys(a.r.key, b.r.key), cmp.Compare(a.rank, b.rank))
}

func openMerged(runs []runFile) (*merged, error) {
	m := &merged{}
	for i, f := range runs {
		r, err := f.open()
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.all = append(m.all, r)
		if !r.done {
			m.heap = append(m.heap, mergeItem{r, i})
		}
	}
	slices.SortFunc(m.heap, mergeItem.compare)
	return m, nil
}

func (m *merged) close() error {
	var errs []error
	for _, r := range m.all {
		errs = append(errs, r.file.Close())
	}
	return errors.Join(errs...)
}

func (m *merged) done() bool { return len(m.heap) == 0 }

func (m *merged) top() (key []uint64, link uint64) { return m.heap[0].r.key, m.heap[0].r.link }

// next leaves the present key behind, in all runs that have it.
func (m *merged) next(passed []uint64) ([]uint64, error) {
	passed = append(passed[:0], m.heap[0].r.key...)
	for len(m.heap) > 0 && compareKeys(m.heap[0].r.key, passed) == 0 {
		r := m.heap[0].r
		if err := r.next(); err != nil {
			return passed, err
		}
		if r.done {
			m.heap[0] = m.heap[len(m.heap)-1]
			m.heap = m.heap[:len(m.heap)-1]
		}
		m.sink()
	}
	return passed, nil
}

func (m *merged) sink() {
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heap); c++ {
			if m.heap[c].compare(m.heap[least]) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// mergeRuns writes runs as one and removes them.
func mergeRuns(path string, stride int, runs []runFile, keep func(runFile) bool) (runFile, error) {
	in, err := openMerged(runs)
	if err != nil {
		return runFile{}, err
	}
	w, err := newRunWriter(path, stride, runs[0].links)
	if err != nil {
		return runFile{}, errors.Join(err, in.close())
	}
	var passed []uint64
	for !in.done() && err == nil {
		if err = w.add(in.top()); err == nil {
			passed, err = in.next(passed)
		}
	}
	out, closed := w.close()
	if err := errors.Join(err, closed, in.close()); err != nil {
		return runFile{}, err
	}
	for _, f := range runs {
		if !keep(f) {
			if err := os.Remove(f.path); err != nil {
				return runFile{}, err
			}
		}
	}
	return out, nil
}
