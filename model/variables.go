package model

// Index is where a function is taken, or a tuple that may be in a set: one number of each domain in turn.
type Index [5]uint8

// Variable describes one variable of the TLA+ text: a function from the domains Of into In, a plain value where Of is empty, or
// a set of tuples of Of where In is "Member". Get and Set reach its cells; Set takes 1 for TRUE and for a member, 0 else.
type Variable struct {
	Name string
	Of   []string
	In   string
	Get  func(s *State, at Index) uint8
	Set  func(s *State, at Index, v uint8)

	size func(s *State) int // of a set
}

// Variables are all variables in the order of the TLA+ text: Network.tla, Fabric.tla, Sharing.tla, Transfer.tla.
func Variables() []Variable {
	var all []Variable
	for _, group := range [][]Variable{
		networkVariables(), fabricVariables(), sharingVariables(), leaderVariables(), decodeVariables(), grantVariables(), prefillVariables(),
	} {
		all = append(all, group...)
	}
	return all
}

func bytes(name string, of []string, in string, cell func(s *State, at Index) *uint8) Variable {
	return Variable{
		name, of, in,
		func(s *State, at Index) uint8 { return *cell(s, at) },
		func(s *State, at Index, v uint8) { *cell(s, at) = v },
		nil,
	}
}

func flags(name string, of []string, cell func(s *State, at Index) *bool) Variable {
	return Variable{
		name, of, "BOOLEAN",
		func(s *State, at Index) uint8 { return bit(*cell(s, at)) },
		func(s *State, at Index, v uint8) { *cell(s, at) = v != 0 },
		nil,
	}
}

// members is a set of either size.
func members[S interface {
	has(uint) bool
	add(uint)
	drop(uint)
	size() int
}](name string, of []string, set func(s *State) S, index func(at Index) uint) Variable {
	return Variable{
		name, of, "Member",
		func(s *State, at Index) uint8 { return bit(set(s).has(index(at))) },
		func(s *State, at Index, v uint8) {
			if v != 0 {
				set(s).add(index(at))
			} else {
				set(s).drop(index(at))
			}
		},
		func(s *State) int { return set(s).size() },
	}
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func dom(domains ...string) []string { return domains }

func networkVariables() []Variable {
	return []Variable{
		members("ans", dom("Kind", "Lease", "Rank", "Inc"), func(s *State) *Set { return &s.Ans }, receiptIndex),
		members("nsent", dom("Lease", "Rank", "Chan", "Inc"), func(s *State) *Small { return &s.Nsent }, noticeIndex),
		members("acc", dom("Rank", "Inc", "DInc", "Epoch"), func(s *State) *Set { return &s.Acc }, func(a Index) uint { return acceptAt(a[0], a[1], a[2], a[3]) }),
	}
}

func sharingVariables() []Variable {
	return []Variable{
		bytes("ten", dom("Lease"), "Tenant", func(s *State, a Index) *uint8 { return &s.Ten[a[0]] }),
		bytes("ada", dom("Lease"), "Adapter", func(s *State, a Index) *uint8 { return &s.Ada[a[0]] }),
		bytes("pre", dom("Lease"), "Prefix", func(s *State, a Index) *uint8 { return &s.Pre[a[0]] }),
		members("pubs", dom("Page", "Gen", "Lease"), func(s *State) *Set { return &s.Pubs }, func(a Index) uint { return publishedAt(a[0], a[1], a[2]) }),
		members("shr", dom("Lease", "Page", "Lease"), func(s *State) *Small { return &s.Shr }, func(a Index) uint { return sharedAt(a[0], a[1], a[2]) }),
		flags("app", dom("Page"), func(s *State, a Index) *bool { return &s.App[a[0]] }),
	}
}

func leaderVariables() []Variable {
	return []Variable{
		bytes("lead", dom("Transfer"), "Lead", func(s *State, a Index) *uint8 { return &s.Lead[a[0]] }),
		bytes("cause", dom("Transfer"), "Cause", func(s *State, a Index) *uint8 { return &s.Cause[a[0]] }),
		bytes("root", dom("Transfer"), "Transfer", func(s *State, a Index) *uint8 { return &s.Root[a[0]] }),
		bytes("succ", dom("Transfer"), "Transfer0", func(s *State, a Index) *uint8 { return &s.Succ[a[0]] }),
		bytes("http", dom("Transfer"), "HTTP", func(s *State, a Index) *uint8 { return &s.Http[a[0]] }),
		flags("pask", dom("Transfer"), func(s *State, a Index) *bool { return &s.Pask[a[0]] }),
	}
}

func decodeVariables() []Variable {
	return []Variable{
		bytes("own", dom("Page"), "Lease0", func(s *State, a Index) *uint8 { return &s.Own[a[0]] }),
		bytes("gen", dom("Page"), "Gen", func(s *State, a Index) *uint8 { return &s.Gen[a[0]] }),
		bytes("dst", dom("Lease"), "Dst", func(s *State, a Index) *uint8 { return &s.Dst[a[0]] }),
		flags("hold", dom("Lease", "Rank"), func(s *State, a Index) *bool { return &s.Hold[a[0]][a[1]] }),
		flags("got", dom("Lease", "Rank"), func(s *State, a Index) *bool { return &s.Got[a[0]][a[1]] }),
		members("rec", dom("Kind", "Lease", "Rank", "Inc"), func(s *State) *Set { return &s.Rec }, receiptIndex),
		members("nin", dom("Lease", "Rank", "Chan", "Inc"), func(s *State) *Small { return &s.Nin }, noticeIndex),
		bytes("qep", dom("Lease", "Rank"), "Epoch", func(s *State, a Index) *uint8 { return &s.Qep[a[0]][a[1]] }),
		members("krn", dom("Lease", "Page", "Gen", "Lease"), func(s *State) *Large { return &s.Krn }, func(a Index) uint { return kernelAt(a[0], a[1], a[2], a[3]) }),
		members("tok", dom("Lease", "Lease", "Lease0"), func(s *State) *Set { return &s.Tok }, func(a Index) uint { return tokenAt(a[0], a[1], a[2]) }),
		bytes("ep", dom("Rank"), "Epoch", func(s *State, a Index) *uint8 { return &s.Ep[a[0]] }),
		bytes("linc", dom("Rank"), "Inc", func(s *State, a Index) *uint8 { return &s.Linc[a[0]] }),
		flags("up", dom("Rank"), func(s *State, a Index) *bool { return &s.Up[a[0]] }),
		flags("fencing", dom("Rank"), func(s *State, a Index) *bool { return &s.Fencing[a[0]] }),
		bytes("dinc", nil, "DInc", func(s *State, a Index) *uint8 { return &s.Dinc }),
		bytes("dmark", dom("Rank"), "Nat", func(s *State, a Index) *uint8 { return &s.Dmark[a[0]] }),
		bytes("nextL", nil, "Nat", func(s *State, a Index) *uint8 { return &s.NextL }),
	}
}

func grantVariables() []Variable {
	return []Variable{
		bytes("gpage", dom("Lease", "Page"), "Gen", func(s *State, a Index) *uint8 { return &s.Gpage[a[0]][a[1]] }),
		flags("owes", dom("Lease", "Rank"), func(s *State, a Index) *bool { return &s.Owes[a[0]][a[1]] }),
		bytes("gep", dom("Lease", "Rank"), "Epoch", func(s *State, a Index) *uint8 { return &s.Gep[a[0]][a[1]] }),
		bytes("ginc", dom("Lease", "Rank"), "Inc", func(s *State, a Index) *uint8 { return &s.Ginc[a[0]][a[1]] }),
		bytes("dof", dom("Lease"), "DInc", func(s *State, a Index) *uint8 { return &s.Dof[a[0]] }),
		bytes("tof", dom("Lease"), "Transfer0", func(s *State, a Index) *uint8 { return &s.Tof[a[0]] }),
	}
}

func prefillVariables() []Variable {
	return []Variable{
		bytes("pinc", dom("Rank"), "Inc", func(s *State, a Index) *uint8 { return &s.Pinc[a[0]] }),
		bytes("pst", dom("Lease", "Rank"), "Pst", func(s *State, a Index) *uint8 { return &s.Pst[a[0]][a[1]] }),
		bytes("pview", dom("Lease", "Rank"), "View", func(s *State, a Index) *uint8 { return &s.Pview[a[0]][a[1]] }),
		bytes("pmark", dom("Rank"), "Nat", func(s *State, a Index) *uint8 { return &s.Pmark[a[0]] }),
		members("pfenced", dom("Rank", "DInc", "Epoch"), func(s *State) *Small { return &s.Pfenced }, func(a Index) uint { return fencedAt(a[0], a[1], a[2]) }),
		bytes("sown", dom("Rank", "SPage"), "Lease0", func(s *State, a Index) *uint8 { return &s.Sown[a[0]][a[1]] }),
		bytes("sdat", dom("Rank", "SPage"), "Lease0", func(s *State, a Index) *uint8 { return &s.Sdat[a[0]][a[1]] }),
		bytes("sst", dom("Rank", "SPage"), "Sst", func(s *State, a Index) *uint8 { return &s.Sst[a[0]][a[1]] }),
		members("sent", writeDomains(), func(s *State) *Set { return &s.Sent }, writeIndex),
		bytes("src", dom("Lease", "Rank", "Page", "Chan"), "SPage0", func(s *State, a Index) *uint8 { return &s.Src[a[0]][a[1]][a[2]][a[3]] }),
	}
}

func fabricVariables() []Variable {
	return []Variable{
		members("queued", writeDomains(), queued, writeIndex),
		members("flying", writeDomains(), flying, writeIndex),
		members("placing", writeDomains(), placing, writeIndex),
		members("unseen", writeDomains(), unseen, writeIndex),
		members("lost", writeDomains(), func(s *State) *Set { return &s.Lost }, writeIndex),
		bytes("pay", dom("Lease", "Rank", "Page", "Chan"), "Lease0", func(s *State, a Index) *uint8 { return &s.Pay[a[0]][a[1]][a[2]][a[3]] }),
		bytes("mem", dom("Page", "Rank"), "Lease0", func(s *State, a Index) *uint8 { return &s.Mem[a[0]][a[1]] }),
		bytes("tagl", dom("Page", "Rank"), "Lease0", func(s *State, a Index) *uint8 { return &s.Tagl[a[0]][a[1]] }),
		flags("spent", nil, func(s *State, a Index) *bool { return &s.Spent }),
	}
}

func writeDomains() []string    { return dom("Lease", "Rank", "Page", "Chan", "Inc") }
func writeIndex(a Index) uint   { return writeAt(a[0], a[1], a[2], a[3], a[4]) }
func noticeIndex(a Index) uint  { return noticeAt(a[0], a[1], a[2], a[3]) }
func receiptIndex(a Index) uint { return receiptAt(a[0], a[1], a[2], a[3]) }
