package spec

// Grant hands pages to one prefill rank (decode rank to prefill rank). It carries no addresses and no key. For pull, Pages
// only say how many pages of each component are wanted. The first KV pages may be void (number and generation 0): decode shares what
// they hold with other leases, nothing of them is owed and none may be written.
type Grant struct {
	Transfer TransferID
	Lease    LeaseID
	Domain   Domain
	Tokens   uint32
	Pages    [ComponentCount][]GrantedPage
	Parts    []Part // those that this prefill rank owes
	Digests  bool
}

// Kind is KindGrant.
func (Grant) Kind() Kind { return KindGrant }

func (m *Grant) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	c.raw("domain", m.Domain[:])
	u32(c, "tokens", &m.Tokens, 0, MaxPrompt)
	for k := range m.Pages {
		pages(c, "pages."+Component(k).String(), &m.Pages[k])
	}
	c.parts(&m.Parts, m.Tokens)
	c.flag("digests", &m.Digests)
}
