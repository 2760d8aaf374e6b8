package model

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The largest settings that a State has room for. Ranks and pages are counted, leases, transfers and source pages are numbers
// from 1 to the maximum, epochs and incarnations numbers from 0 to it.
const (
	MaxLeases    = 4
	MaxPages     = 3
	MaxRanks     = 2
	MaxChans     = 2
	MaxTenants   = 3
	MaxAdapters  = 3
	MaxPrefixes  = 3
	MaxTransfers = 3
	MaxSPages    = 3
	MaxEpoch     = 3
	MaxInc       = 2
	MaxDInc      = 2
)

// ErrSettings means that constants are missing, unknown, not of the expected form, or too large for a State.
var ErrSettings = errors.New("model: settings do not fit")

// Settings are the constants of TLA/Transfer.tla with what it extends and the bounds of TLA/MCTransfer.tla, under their names
// there. Elements of the sets of names are known by their place in the slice everywhere else. Read only after FromConstants; safe for
// concurrent use.
type Settings struct {
	Page, Rank, Chan, Tenant, Adapter, Prefix []string

	NoTenant  uint8 // place in Tenant
	NoAdapter uint8 // place in Adapter
	NoPrefix  uint8 // place in Prefix
	Aux       uint8 // bit p: page p
	AuxWriter uint8 // place in Rank
	State     uint8 // bit p: page p
	StateRank uint8 // bit k: rank k
	Big       uint8 // bit t: transfer t
	Views     uint8 // bit v: ViewSame, ViewShort, ViewOther
	Causes    uint8 // bit c: CauseDerived, CauseOriginal

	NL, NE, NI, ND, NT, NQ uint8

	// Features.
	Asking, Running, EmptyPlans, Marking, Publishing, Appending, Growing, Retrying, Losing, Breaking, OwnMarking, PFencing bool
	// Guarantees of network and fabric.
	Authentic, InOrder, FlushSeen bool
	// Plants: guarantees that are broken once.
	PlantStray, PlantTorn, PlantFlip bool
	// Prevention guards.
	Admit, CompleteNames, PlanCovers, ByName, AllHolds, DeferRelease, SrcHold, LocalHold, SealedOnly, AckDrained, TakeDrained, CompleteVisible, ChannelAll,
	GoneLists, OnlyGranted, FenceFirst, FenceRaises, FenceWaits, MarkStart, MarkForget, RetryDrained, PlaceChecks, DecodeInc, GenCheck,
	NonceCheck, FirstVerdict, OneWriter, CopyFirst, AllParts, CoverAll, LeadAll, RetryOver, LastSpeaks, CauseKept,
	SameTenant, SameAdapter, SameContent bool
	// Detection guards.
	DigestVerify, TagBefore, TagAfter, VoidTags bool
}

// FromConstants reads Settings from the constants of a configuration, written as in TLC's configuration files: numbers, TRUE
// and FALSE, names, sets of names. Every constant must be there and no other; ErrSettings says what is wrong, all at once.
func FromConstants(constants map[string]string) (Settings, error) {
	r := reader{constants: constants, used: map[string]bool{}}
	w := Settings{
		Page: r.names("Page", MaxPages), Rank: r.names("Rank", MaxRanks), Chan: r.names("Chan", MaxChans), Tenant: r.names("Tenant", MaxTenants),
		Adapter: r.names("Adapter", MaxAdapters), Prefix: r.names("Prefix", MaxPrefixes),
		NL: r.number("NL", 1, MaxLeases), NE: r.number("NE", 0, MaxEpoch), NI: r.number("NI", 0, MaxInc), ND: r.number("ND", 0, MaxDInc),
		NT: r.number("NT", 1, MaxTransfers), NQ: r.number("NQ", 1, MaxSPages),
	}
	w.NoTenant, w.NoAdapter, w.NoPrefix = r.oneOf("NoTenant", w.Tenant), r.oneOf("NoAdapter", w.Adapter), r.oneOf("NoPrefix", w.Prefix)
	w.Aux, w.AuxWriter = r.subset("Aux", w.Page), r.oneOf("AuxWriter", w.Rank)
	w.State, w.StateRank = r.subset("State", w.Page), r.subset("StateRank", w.Rank)
	w.Big, w.Views, w.Causes = r.subset("Big", numbered(w.NT)), r.subset("Views", quoted(viewNames[:])), r.subset("Causes", quoted(causeNames[:]))
	if w.Causes&(1<<CauseNone) != 0 {
		r.refuse("Causes")
	}
	fields := reflect.ValueOf(&w).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Kind() == reflect.Bool {
			fields.Field(i).SetBool(r.boolean(fields.Type().Field(i).Name))
		}
	}
	return w, r.end()
}

// reader takes constants one by one and keeps what is wrong with them.
type reader struct {
	constants map[string]string
	used      map[string]bool
	wrong     []string
}

func (r *reader) text(name string) string {
	v, ok := r.constants[name]
	if !ok {
		r.wrong = append(r.wrong, name+" is missing")
	}
	r.used[name] = true
	return strings.TrimSpace(v)
}

func (r *reader) refuse(name string) {
	r.wrong = append(r.wrong, fmt.Sprintf("%s = %s", name, r.constants[name]))
}

func (r *reader) number(name string, low, high uint8) uint8 {
	n, err := strconv.ParseUint(r.text(name), 10, 8)
	if err != nil || uint8(n) < low || uint8(n) > high {
		r.refuse(name)
	}
	return uint8(n)
}

func (r *reader) boolean(name string) bool {
	v := r.text(name)
	if v != "TRUE" && v != "FALSE" {
		r.refuse(name)
	}
	return v == "TRUE"
}

func (r *reader) set(name string) []string {
	v := r.text(name)
	if len(v) < 2 || v[0] != '{' || v[len(v)-1] != '}' {
		r.refuse(name)
		return nil
	}
	var out []string
	for e := range strings.SplitSeq(v[1:len(v)-1], ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

func (r *reader) names(name string, most int) []string {
	out := r.set(name)
	if slices.Sort(out); len(out) == 0 || len(out) > most || len(slices.Compact(slices.Clone(out))) != len(out) {
		r.refuse(name)
	}
	return out
}

func (r *reader) oneOf(name string, of []string) uint8 {
	i := slices.Index(of, r.text(name))
	if i < 0 {
		r.refuse(name)
		return 0
	}
	return uint8(i)
}

func (r *reader) subset(name string, of []string) uint8 {
	var mask uint8
	for _, e := range r.set(name) {
		if i := slices.Index(of, e); i >= 0 && i < 8 {
			mask |= 1 << i
		} else {
			r.refuse(name)
		}
	}
	return mask
}

func (r *reader) end() error {
	for name := range r.constants {
		if !r.used[name] {
			r.wrong = append(r.wrong, name+" is unknown")
		}
	}
	if len(r.wrong) == 0 {
		return nil
	}
	slices.Sort(r.wrong)
	return fmt.Errorf("%w: %s", ErrSettings, strings.Join(r.wrong, ", "))
}

// numbered is the texts of 0 to n; 0 is no transfer, so that its place is only there to be refused.
func numbered(n uint8) []string {
	out := []string{""}
	for i := range n {
		out = append(out, strconv.Itoa(int(i)+1))
	}
	return out
}

func quoted(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, strconv.Quote(n))
	}
	return out
}
