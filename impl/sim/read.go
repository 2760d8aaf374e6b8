package sim

import (
	"bytes"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// verify compares tags, and the digests of what landed, with the ledger. The record of what landed is taken at once, before a
// fence or revoke can take it away; the tags are looked at when the work is done.
func (r *decodeRank) verify(a core.Verify) {
	type cell struct {
		c     spec.Component
		part  spec.PartIndex
		index uint32
	}
	landed, reread := map[cell]uint64{}, map[cell]spec.Part{}
	for _, l := range a.Links {
		records := r.links[l.Peer].grants.Landed(a.Lease, l.Parts)
		if r.side.w.cfg.Verbs.On { // the adapter keeps no record: the pages are read, once the rights of the lease are gone
			records = nil
			r.takeBack(a.Lease, r.links[l.Peer])
		}
		if records == nil {
			for _, p := range l.Parts {
				reread[cell{p.Component, p.Index, 0}] = p
			}
		}
		for _, rec := range records {
			for i, done := range rec.Done {
				if done && rec.Digest != nil {
					landed[cell{rec.Part.Component, rec.Part.Index, rec.Lo + uint32(i)}] = rec.Digest[i]
				}
			}
		}
	}
	r.side.w.work(r.host, 1_000_000, func() {
		v := core.Verified{Lease: a.Lease}
		for _, c := range a.Checks {
			pool := r.mem[c.Component]
			bad := core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: device.CheckTag(pool.Slot(c.Page, c.Slot), c.Want)}
			if len(a.Links) > 0 && c.Want.HasDigest && c.Want.Part != spec.PartLocal {
				got, ok := landed[cell{c.Component, c.Slot, c.Want.Index}]
				if p, again := reread[cell{c.Component, c.Slot, 0}]; again {
					segs, err := p.Segments(pool.Layout, c.Want.Index, nil)
					got, ok = device.DigestSegments(pool.Page(c.Page), segs, device.HeaderOf(p, pool.Layout, c.Want.Index, spec.UsedBytes(segs))), err == nil
				}
				bad.Digest = !ok || got != c.Want.Digest
			}
			if bad.State != spec.TagGood || bad.Digest {
				v.Bad = append(v.Bad, bad)
			}
		}
		for _, c := range a.Void {
			if _, s := device.GetTag(r.mem[c.Component].Slot(c.Page, c.Slot)); s != spec.TagVoid {
				v.Bad = append(v.Bad, core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Index, State: spec.TagForeign})
			}
		}
		if r.side.w.cfg.Plant.FlipLanded && len(a.Checks) > 0 {
			r.mem[a.Checks[0].Component].Page(a.Checks[0].Page)[0] ^= 1
		}
		r.side.later(r.host, v)
	})
}

// takeBack takes back what the adapter lets a peer write for a lease, as impl/node does before it verifies.
func (r *decodeRank) takeBack(lease spec.LeaseID, t *targetLink) {
	if r.side.w.cfg.Plant.VerifyFirst {
		return
	}
	t.grants.TakeBack(lease)
	for _, p := range t.paths {
		if p.dst != nil && !p.fenced {
			p.dst.Settle([]spec.LeaseID{lease})
		}
	}
}

// pullCopy hands a copy job to the reader of its epoch.
func (r *decodeRank) pullCopy(a core.PullCopy) {
	t := r.links[a.Peer]
	var p *targetPath
	for _, x := range t.paths {
		if x.info.Epoch == a.Epoch && x.rd != nil && !x.fenced {
			p = x
		}
	}
	if p == nil {
		r.side.later(r.host, core.PullDone{Peer: a.Peer, Epoch: a.Epoch, Job: a.Job, Lease: a.Lease, Err: "no open reader"})
		return
	}
	j := transport.CopyJob{ID: a.Job, Lease: a.Lease, Digests: a.Digests}
	for _, it := range a.Items {
		own := r.mem[it.Part.Component].Layout
		var theirs spec.Layout
		for _, l := range p.theirs {
			if l.Component == it.Part.Component {
				theirs = l
			}
		}
		src, err1 := it.Part.Segments(theirs, it.Index, nil)
		dst, err2 := it.Part.Segments(own, it.Index, nil)
		if err1 != nil || err2 != nil {
			r.side.w.violate(Contract, "copy: %v %v", err1, err2)
			return
		}
		j.Copies = append(j.Copies, transport.Copy{Component: it.Part.Component, Part: it.Part.Index, Index: it.Index, Src: it.Src, SrcSlot: it.SrcSlot,
			SrcSegs: src, SrcTag: it.SrcTag, Dst: it.Dst, DstSegs: dst, DstTag: it.DstTag,
			Head: device.HeaderOf(it.Part, own, it.Index, spec.UsedBytes(dst))})
	}
	p.copies[j.ID] = j.Copies
	p.rd.Copy(j)
}

// read is one ReadFirst or RunStep over all ranks of a side.
type read struct {
	transfer spec.TransferID
	leases   []spec.LeaseID
	first    bool
	run      core.RunStep
	tables   []*core.ReadPages
	bad      [][]core.BadPart
	copied   bool
	fork     *fork // a step of a further sample; nil: the leader's
}

// begin asks every rank for its block table, behind what the leader has sent them before.
func (d *decodeSide) begin(rd *read, pos uint32) {
	rd.tables, rd.bad = make([]*core.ReadPages, len(d.ranks)), make([][]core.BadPart, len(d.ranks))
	for k, r := range d.ranks {
		d.laterDo(func() {
			r.asked = rd
			d.w.step(r.host, core.ReadBegin{Lease: rd.leases[k], Pos: pos})
			r.asked = nil
		})
	}
	d.laterDo(func() { d.begun(rd) })
}

// begun checks the tags and starts the kernel, if no rank refused.
func (d *decodeSide) begun(rd *read) {
	for _, t := range rd.tables {
		if t == nil {
			d.ended(rd, false, 0)
			return
		}
	}
	if !d.tagsGood(rd) {
		d.ended(rd, false, 0)
		return
	}
	d.w.work(d.lead, 1_000_000, func() {
		d.copies(rd)
		whole := d.kernel(rd)
		good := d.tagsGood(rd)
		if d.failing && good && !rd.first && rd.fork == nil {
			d.failing = false
			d.ended(rd, false, 0)
			return
		}
		if good && !whole {
			d.w.violate(I3, "%s reads foreign bytes for transfer %s, and every tag agrees", d.lead.name, rd.transfer)
		}
		x := d.known(rd)
		d.ended(rd, good, x.toy.next(len(x.toy.chain)-1))
	})
}

// kernel reads everything that the step reads, and compares every byte with what it must be. false: some byte is another's.
func (d *decodeSide) kernel(rd *read) bool {
	x := d.known(rd)
	upTo := uint32(x.prompt)
	if !rd.first {
		upTo = rd.run.Pos + 1
		if len(x.toy.chain) == int(upTo) {
			x.toy.push(rd.run.Token)
		}
		if len(x.toy.chain) != int(upTo)+1 {
			d.w.violate(Contract, "step at %d, %d tokens are known of transfer %s", rd.run.Pos, len(x.toy.chain)-1, rd.transfer)
			return true
		}
		for k, r := range d.ranks { // the step writes its own position
			x.toy.eachCell(r.mem[spec.KV], d.w.appendTo(rd.tables[k].Pages[spec.KV]), rd.run.Pos, upTo, func(got, want []byte) { copy(got, want) })
		}
	}
	whole := true
	see := func(got, want []byte) { whole = whole && bytes.Equal(got, want) }
	for k, r := range d.ranks {
		x.toy.eachCell(r.mem[spec.KV], rd.tables[k].Pages[spec.KV], 0, upTo, see)
		x.toy.eachRecord(r.mem, rd.tables[k].Pages, x.prompt, see)
	}
	return whole
}

// tagsGood compares the tags of the block tables with the ledger's.
func (d *decodeSide) tagsGood(rd *read) bool {
	good := true
	for k, t := range rd.tables {
		rd.bad[k] = nil
		for _, c := range t.Checks {
			if s := device.CheckTag(d.ranks[k].mem[c.Component].Slot(c.Page, c.Slot), c.Want); s != spec.TagGood {
				rd.bad[k] = append(rd.bad[k], core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: s})
				good = false
			}
		}
	}
	return good
}

// ended tells the ranks, then the leader.
func (d *decodeSide) ended(rd *read, ok bool, next int32) {
	for k, t := range rd.tables {
		if t != nil {
			d.later(d.ranks[k].host, core.ReadEnd{Lease: rd.leases[k], Bad: rd.bad[k], Copied: rd.copied})
		}
	}
	if rd.fork != nil {
		d.forkStepped(rd.fork, ok, next)
		return
	}
	var ev core.Event = core.StepDone{Transfer: rd.transfer, OK: ok, Next: core.Token{ID: next}}
	if rd.first {
		ev = core.FirstRead{Transfer: rd.transfer, OK: ok, Tokens: uint32(d.w.xfers[rd.transfer].prompt), First: core.Token{ID: next}}
	}
	d.laterDo(func() { d.later(d.lead, ev) }) // behind what the ranks have to say about bad tags: that is the first cause
}
