package core

import (
	"slices"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// Source pages that jobs share. What a job computed for the full pages of its prompt is published when the job ends well; a later job of
// the same domain and tokens takes shares of it and computes what is behind. Only pushed jobs share: a pulled page's source tags
// name one job. Byte digests are not taken twice: they stay with the published page (spec, digest.md).

// sealedPart is the byte digest of one part of one whole source page, as it was taken at its seal.
type sealedPart struct {
	part spec.Part
	tag  spec.Tag
}

// alike reports two parts with the same bytes in a full page.
func alike(a, b spec.Part) bool {
	return a.LayerLo == b.LayerLo && a.LayerHi == b.LayerHi && a.HeadLo == b.HeadLo && a.HeadHi == b.HeadHi
}

// whole reports that all tokens of a page belong to a part.
func (r *PrefillRank) whole(p spec.Part, i uint32) bool {
	own := layoutOf(r.own, spec.KV)
	lo, hi := p.Tokens(*own, i)
	return p.Component == spec.KV && lo == 0 && hi == own.Equal.TokensPerPage
}

// mayShare reports whether a job may stand on pages of others: its grants are in, and none is pulled. A state record is computed from the
// first token on, so that a side with one computes every prompt whole.
func (r *PrefillRank) mayShare(j *prefillJob) bool {
	return r.cfg.MaxPublished > 0 && !j.half && layoutOf(r.own, spec.State) == nil &&
		!slices.ContainsFunc(j.leases, func(l *prefillLease) bool { return l.link.pull })
}

// sharePrefix takes shares of the longest published prefix of a job's prompt, at most so many pages, and as far as the digest of every
// part that is owed of them is known.
func (r *PrefillRank) sharePrefix(j *prefillJob, most uint32) {
	if !r.mayShare(j) {
		return
	}
	kv := r.ledgers[spec.KV]
	most = min(most, uint32(len(j.contents)), (max(j.tokens, 1)-1)/layoutOf(r.own, spec.KV).Equal.TokensPerPage)
	found := kv.Prefix(j.contents[:most], func(i uint32, p pages.Publication) bool { return r.digestsKnown(j, p, i) })
	if len(found) == 0 {
		return
	}
	g, err := kv.Share(j.owner, j.domain, found)
	if err != nil { // it does without
		r.count(spec.RefuseNotGranted, 0, 0, err.Error())
		return
	}
	j.shared, j.share = found, g
	r.hits += uint64(len(found))
}

func (r *PrefillRank) digestsKnown(j *prefillJob, p pages.Publication, i uint32) bool {
	for _, l := range j.leases {
		for _, x := range l.parts {
			if lo, hi := x.lo, x.hi; x.part.Component == spec.KV && lo <= i && i < hi {
				if _, ok := digestOf(p, x.part); !ok && r.cfg.Digests {
					return false
				}
			}
		}
	}
	return true
}

// digestOf is the digest of a part that was taken when the page was sealed.
func digestOf(p pages.Publication, part spec.Part) (uint64, bool) {
	for k, x := range p.Parts {
		if alike(x, part) {
			return p.Tags[k].Digest, true
		}
	}
	return 0, false
}

// endShare ends a job's hold on what it shares: nothing of the job reads any more.
func (r *PrefillRank) endShare(j *prefillJob) {
	if j.share == 0 {
		return
	}
	e, err := r.ledgers[spec.KV].EndGroup(j.share)
	if err != nil {
		r.broken(17, "kv ledger: %v", err)
	}
	r.freed = r.freed || e.Freed > 0
	j.shared, j.share = nil, 0
}

// sealShared passes over the shared pages at the seal cursor of a part: they are sealed, and their digests are known.
func (r *PrefillRank) sealShared(l *prefillLease, p *prefillPart, hi uint32) (any bool) {
	if p.part.Component != spec.KV {
		return false
	}
	for ; p.toSeal == p.sealed && p.toSeal < min(hi, uint32(len(l.job.shared))) && r.whole(p.part, p.toSeal); p.toSeal++ {
		d, ok := digestOf(l.job.shared[p.toSeal], p.part)
		if !ok && r.cfg.Digests {
			break
		}
		if r.cfg.Digests {
			p.digests = append(p.digests, d)
		}
		p.sealed++
		any = true
	}
	return any
}

// noteSealed keeps the digests of whole pages for the job's publication.
func (r *PrefillRank) noteSealed(l *prefillLease, p *prefillPart, from, to uint32) {
	j := l.job
	if r.cfg.MaxPublished == 0 || p.part.Component != spec.KV || l.link.pull {
		return
	}
	for i := from; i < min(to, uint32(len(j.contents))); i++ {
		if !r.whole(p.part, i) || i < uint32(len(j.shared)) {
			continue
		}
		tag := spec.Tag{Part: p.part.Index, Index: i, Domain: j.domain, Gen: j.pages[spec.KV][i].Gen, Lease: spec.LeaseID(j.owner), HasDigest: r.cfg.Digests}
		if r.cfg.Digests {
			tag.Digest = p.digests[i-p.lo]
		}
		if j.sealed == nil {
			j.sealed = map[uint32][]sealedPart{}
		}
		if !slices.ContainsFunc(j.sealed[i], func(x sealedPart) bool { return alike(x.part, p.part) }) {
			j.sealed[i] = append(j.sealed[i], sealedPart{p.part, tag})
		}
	}
}

// publish makes the full source pages of a job that ended well known. Those of which no part was ever sealed are not: their digests
// were never taken.
func (r *PrefillRank) publish(j *prefillJob) {
	if !r.mayShare(j) || !j.taken || j.stopped || !j.last {
		return
	}
	for i := uint32(len(j.shared)); i < uint32(len(j.contents)); i++ {
		if len(j.sealed[i]) == 0 {
			continue
		}
		g := j.pages[spec.KV][i]
		p := pages.Publication{Content: j.contents[i], Domain: j.domain, Page: g.Page, Gen: g.Gen, Filler: j.owner}
		for _, x := range j.sealed[i] {
			p.Parts, p.Tags = append(p.Parts, x.part), append(p.Tags, x.tag)
		}
		if _, err := r.ledgers[spec.KV].Publish(p); err != nil {
			r.broken(17, "kv ledger: %v", err)
			return
		}
	}
	r.ledgers[spec.KV].Ended() // nobody is told
}

// ownsSource is I6 for one source page of a job: it is the job's in its generation, or it holds a share of it, published in that
// generation for the same domain and tokens.
func (r *PrefillRank) ownsSource(j *prefillJob, c spec.Component, i uint32, src spec.SourcePage) bool {
	led := r.ledgers[c]
	if led.Gen(src.Page) != src.Gen {
		return false
	}
	if c != spec.KV || uint64(i) >= uint64(len(j.shared)) {
		return led.Owner(src.Page) == j.owner
	}
	p := j.shared[i]
	return led.Shares(j.share, i, src.Page) && p.Page == src.Page && p.Domain == j.domain && p.Content == j.contents[i]
}
