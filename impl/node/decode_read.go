package node

import (
	"errors"
	"fmt"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/spec"
)

// errTags says that a tag was not as expected, before or after a read.
var errTags = errors.New("tags are not as expected")

// read is one ReadFirst or RunStep: every rank is asked for its block table, a worker checks the tags, reads, checks again, and
// then every rank is told that the read has ended, before the leader hears of the outcome.
type read struct {
	transfer spec.TransferID
	first    bool
	run      core.RunStep
	leases   []spec.LeaseID
	tables   []*core.ReadPages // by rank; nil where refused
	bad      [][]core.BadPart
	copied   bool // the copies of all ranks are done
}

func (d *decodeSide) beginFirst(a core.ReadFirst) {
	d.begin(&read{transfer: a.Transfer, first: true, leases: a.Leases}, 0)
}

func (d *decodeSide) beginStep(a core.RunStep) {
	d.begin(&read{transfer: a.Transfer, run: a, leases: a.Leases}, a.Pos)
}

// begin queues ReadBegin at every rank, behind what the leader has sent them. Each answers within its Step, so the read goes on
// when the last has been stepped.
func (d *decodeSide) begin(rd *read, pos uint32) {
	rd.tables, rd.bad = make([]*core.ReadPages, len(d.ranks)), make([][]core.BadPart, len(d.ranks))
	if len(rd.leases) != len(d.ranks) {
		d.fatal(fmt.Errorf("a read of %d leases at %d ranks", len(rd.leases), len(d.ranks)))
		return
	}
	for k, r := range d.ranks {
		d.laterDo(func() {
			r.asked = rd
			d.loop.step(r.host, core.ReadBegin{Lease: rd.leases[k], Pos: pos})
			r.asked = nil
		})
	}
	d.laterDo(func() { d.begun(rd) })
}

// begun hands the read to a worker if no rank refused it.
func (d *decodeSide) begun(rd *read) {
	for _, t := range rd.tables {
		if t == nil {
			d.finishRead(rd, core.FirstRead{Transfer: rd.transfer}, core.StepDone{Transfer: rd.transfer})
			return
		}
	}
	d.step.put(func() {
		first, step := d.read(rd)
		d.box.put(func() { d.finishRead(rd, first, step) })
	})
}

func (r *decodeRank) readPages(a core.ReadPages) {
	if r.asked != nil && r.asked.leases[r.rank] == a.Lease {
		r.asked.tables[r.rank] = &a
	}
}

func (r *decodeRank) readRefused(a core.ReadRefused) {
	r.side.log.Debug("read refused", "rank", r.rank, "lease", a.Lease, "cause", a.Cause)
}

// finishRead tells the ranks, then the leader; on the loop.
func (d *decodeSide) finishRead(rd *read, first core.FirstRead, step core.StepDone) {
	for k, t := range rd.tables {
		if t != nil {
			d.later(d.ranks[k].host, core.ReadEnd{Lease: rd.leases[k], Bad: rd.bad[k], Copied: rd.copied})
		}
	}
	d.laterDo(func() { // behind what the ranks have to say about bad tags: that is the first cause
		if rd.first {
			d.later(d.lead, first)
			return
		}
		d.later(d.lead, step)
	})
}

// read runs on a worker. Only when both checks passed at every rank does a token leave it.
func (d *decodeSide) read(rd *read) (core.FirstRead, core.StepDone) {
	first, step := core.FirstRead{Transfer: rd.transfer}, core.StepDone{Transfer: rd.transfer}
	err := d.checked(rd, func() (err error) {
		if rd.first {
			first.Tokens, first.First, err = d.readFirst(rd)
			return err
		}
		step.Next, err = d.runModel(rd)
		return err
	})
	if err == nil {
		first.OK, step.OK = true, true
		return first, step
	}
	d.log.Warn("read failed", "transfer", rd.transfer, "first", rd.first, "err", err)
	return core.FirstRead{Transfer: rd.transfer}, core.StepDone{Transfer: rd.transfer}
}

// checked runs f between the two tag checks.
func (d *decodeSide) checked(rd *read, f func() error) error {
	if !d.tagsGood(rd) {
		return fmt.Errorf("%w before the read", errTags)
	}
	if err := d.copyPages(rd); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if !d.tagsGood(rd) {
		return fmt.Errorf("%w after the read", errTags)
	}
	return nil
}

// copyPages does what the step must do before its kernel: pages that others may read are copied before they are appended to.
func (d *decodeSide) copyPages(rd *read) error {
	for k, t := range rd.tables {
		for _, c := range t.Copies {
			if err := d.ranks[k].mem[c.Component].Store.CopyTokens(c.Index, c.From.Page, c.To.Page, c.Tokens); err != nil {
				return err
			}
		}
	}
	rd.copied = true
	return nil
}

// tagsGood compares the tags of the block tables with the ledger's; what differs is noted for ReadEnd.
func (d *decodeSide) tagsGood(rd *read) bool {
	if !d.cfg.Guards.StepTagCheck.Enabled() {
		return true
	}
	good := true
	for k, t := range rd.tables {
		states, err := tagStates(d.ranks[k].mem, t.Checks)
		if err != nil {
			d.log.Error("tags cannot be compared", "rank", k, "err", err)
			return false
		}
		for i, c := range t.Checks {
			if s := states[i]; s != spec.TagGood {
				rd.bad[k] = append(rd.bad[k], core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: s})
				good = false
			}
		}
	}
	return good
}

// readFirst reads the auxiliary record at every rank; they were written by one writer and must agree.
func (d *decodeSide) readFirst(rd *read) (uint32, core.Token, error) {
	var rec auxRecord
	for k, t := range rd.tables {
		aux := t.Pages[spec.Aux]
		if len(aux) == 0 {
			return 0, core.Token{}, fmt.Errorf("%w: rank %d has no page of it", errAux, k)
		}
		page, err := readPage(d.ranks[k].mem[spec.Aux], aux[0].Page)
		if err != nil {
			return 0, core.Token{}, err
		}
		r, err := getAux(page, d.model.Geometry().Vocab)
		if err != nil {
			return 0, core.Token{}, err
		}
		if k > 0 && (r.Tokens != rec.Tokens || r.First.ID != rec.First.ID) {
			return 0, core.Token{}, fmt.Errorf("%w: ranks 0 and %d differ", errAux, k)
		}
		rec = r
	}
	return rec.Tokens, rec.First, nil
}

// runModel runs one decode step over the pools of all ranks.
func (d *decodeSide) runModel(rd *read) (core.Token, error) {
	mems, pages := make([]device.Memory, len(d.ranks)), make([][]spec.GrantedPage, len(d.ranks))
	for k, r := range d.ranks {
		mems[k], pages[k] = r.mem, rd.tables[k].Pages[spec.KV]
	}
	kv, err := newSideKV(d.model.Geometry(), mems, pages)
	if err != nil {
		return core.Token{}, err
	}
	logits, err := d.model.Step(d.ctx, kv, rd.run.Token, int(rd.run.Pos))
	if err == nil {
		err = kv.store(int(rd.run.Pos), int(rd.run.Pos)+1)
	}
	if err != nil {
		return core.Token{}, err
	}
	return sample(logits, rd.run.Sampling, int(rd.run.Pos)+1), nil
}
