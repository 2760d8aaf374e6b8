package gpucheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"kvfence/impl/device"
	"kvfence/impl/device/cuda/driver"
	"kvfence/kernels"
)

// imported is what the importing process says.
type imported struct {
	ReadOnly    string // "", or why it could not be mapped for reading only
	Digests     []uint64
	Tags        bool // every tag of its own pool checked good
	Checked     uint32
	WriteFailed string // what the driver answered to a write through the mapping; "": it was done
	Err         string
}

// runProcesses lets a process, the decode side, copy pages that this one, the prefill side, exported. It is given a file descriptor of
// prefill's pages and nothing else; its own pool is plain device memory, which cannot be exported.
func runProcesses(ctx context.Context, b *bench, s Size, r *Result) {
	shape := shapes()[0]
	at, size, fd, err := b.Export(uint64(s.Pages) * shape.bytes())
	if err != nil {
		r.fail(err)
		return
	}
	shared := os.NewFile(uintptr(fd), "pages")
	defer shared.Close()
	if _, err := b.fill(at, shape, s.Pages); err != nil {
		r.fail(err)
		return
	}
	digests, err := b.digests(at, shape, s.Pages)
	if err != nil {
		r.fail(err)
		return
	}
	child, err := importer(ctx, shared, size, s.Pages)
	if err != nil {
		r.fail(err)
		return
	}
	after, err := b.digests(at, shape, s.Pages)
	r.fail(err)
	same := digests != nil && len(child.Digests) == len(digests)
	for i := range child.Digests {
		same = same && child.Digests[i] == digests[i]
	}
	r.check(same, "the importer's digests are not the exporter's")
	r.check(child.Tags && child.Checked == s.Pages, "the importer's tags: %d checked, all good: %v", child.Checked, child.Tags)
	unchanged := len(after) == len(digests)
	for i := range after {
		unchanged = unchanged && after[i] == digests[i]
	}
	switch {
	case child.ReadOnly != "":
		r.Notes = append(r.Notes, "the importer cannot be held to reading ("+child.ReadOnly+"): the path stays refused by default")
	case child.WriteFailed == "":
		r.Notes = append(r.Notes, "mapped for reading, the importer could write all the same: the path stays refused by default")
	default:
		r.check(unchanged, "the exporter's pages changed")
		r.Notes = append(r.Notes, "mapped for reading; a write through the mapping was refused: "+child.WriteFailed,
			"the access is set by the importing process itself: it keeps an honest importer from writing by mistake and is no wall against one that means to. The path stays refused by default")
	}
	r.figure("pages copied across processes", float64(s.Pages), "pages")
}

// digests are those of the pages in their order.
func (b *bench) digests(at kernels.Addr, shape pageShape, n uint32) ([]uint64, error) {
	m, err := b.move(shape, n, kernels.NewView(at, shape.bytes(), n), kernels.View{}, false)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.queue(kernels.NameDigest, m.args.Grid(), &m.args), b.Sync()); err != nil {
		return nil, err
	}
	return b.finished(m)
}

// importer starts this binary again, with the exported pages as its descriptor 3.
func importer(ctx context.Context, shared *os.File, size uint64, pages uint32) (out imported, err error) {
	self, err := os.Executable()
	if err != nil {
		return out, err
	}
	c := exec.CommandContext(ctx, self)
	c.Env = append(os.Environ(), roleVariable+"=importer", "KVFENCE_GPUCHECK_SIZE="+strconv.FormatUint(size, 10), "KVFENCE_GPUCHECK_PAGES="+strconv.FormatUint(uint64(pages), 10))
	c.ExtraFiles = []*os.File{shared}
	var said, wrong bytes.Buffer
	c.Stdout, c.Stderr = &said, &wrong
	if err := c.Run(); err != nil {
		return out, errors.Join(err, errors.New(wrong.String()))
	}
	if err := json.Unmarshal(said.Bytes(), &out); err != nil {
		return out, err
	}
	if out.Err != "" {
		err = errors.New("importer: " + out.Err)
	}
	return out, err
}

// runImporter is the other process. The write that must be refused comes last: the context does not survive it.
func runImporter(library string, size uint64, pages uint32) (out imported) {
	b, err := open(library)
	if err != nil {
		out.Err = err.Error()
		return out
	}
	at, err := b.Import(3, size, driver.Read)
	if err != nil {
		out.ReadOnly = err.Error()
		if at, err = b.Import(3, size, driver.ReadWrite); err != nil {
			out.Err = err.Error()
			return out
		}
	}
	if err := b.take(at, pages, &out); err != nil {
		out.Err = err.Error()
		return out
	}
	if out.ReadOnly == "" {
		if err := errors.Join(b.Write(at, make([]byte, device.DigestChunk)), b.Sync()); err != nil {
			out.WriteFailed = err.Error()
		}
	}
	return out
}

// take copies the pages into a pool of its own, digest fused and tags last, and checks the tags as before a decode step.
func (b *bench) take(at kernels.Addr, pages uint32, out *imported) error {
	shape := shapes()[0]
	own, err := b.Alloc(uint64(pages)*shape.bytes(), 0, true)
	if err != nil {
		return err
	}
	m, err := b.move(shape, pages, kernels.NewView(at, shape.bytes(), pages), kernels.NewView(own, shape.bytes(), pages), true)
	if err != nil {
		return err
	}
	v, err := b.step(pages, m.tags, shape)
	if err != nil {
		return err
	}
	err = errors.Join(b.queue(kernels.NameConvert, m.args.Grid(), &m.args), b.queue(kernels.NameTagVerify, v.Grid(), &v), b.Sync())
	if err != nil {
		return err
	}
	var r Result
	if err := b.verdict(v, &r, 1, pages, 0); err != nil {
		return err
	}
	out.Tags, out.Checked = len(r.Failed) == 0, pages
	_, err = b.finished(m)
	if err != nil {
		return err
	}
	// What lies in its own pool now, hashed again.
	out.Digests, err = b.digests(own, shape, pages)
	return err
}
