package gpu

import (
	"fmt"
	"strings"
)

// Counter is a count that a card may not have.
type Counter struct {
	Known bool   `json:"known"`
	N     uint64 `json:"n"`
}

// Health is what can be asked of a card at any time. What a card does not have (consumer cards: ECC, row remapping, NVLink) is not known, which is no fault.
type Health struct {
	ECC           Counter `json:"ecc"`           // 1: on, 0: off
	Uncorrectable Counter `json:"uncorrectable"` // since the driver was loaded or the card reset ("volatile")
	Corrected     Counter `json:"corrected"`     // likewise
	RemapPending  Counter `json:"remap_pending"`
	RemapFailed   Counter `json:"remap_failed"`
	RetirePending Counter `json:"retire_pending"`
	Recovery      Counter `json:"recovery"` // what the driver asks for: see recoveries
	Links         []Link  `json:"nvlink,omitempty"`
}

// Link is one NVLink of a card.
type Link struct {
	Number int       `json:"link"`
	Up     bool      `json:"up"`
	Errors [5]uint64 `json:"errors"` // replays, recoveries, flit CRC, data CRC, ECC; 0 where the card does not count them here (Hopper and later)
}

// linkErrors names Link.Errors.
var linkErrors = [5]string{"replays", "recoveries", "CRC errors of flits", "CRC errors of data", "ECC errors"}

// recoveries are the values of NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (nvml.h, nvmlDeviceGpuRecoveryAction_t).
var recoveries = [...]string{"none", "reset the GPU", "reboot the node", "drain peer to peer traffic", "drain and reset", "recover the IMEX domain", "reset the PCIe bus", "reboot the system"}

// recoveryDrain is the one value that wants no reset of this card: peer to peer traffic alone is to end.
const recoveryDrain = 3

// standing are the faults that one look shows, whatever was before. Volatile counts are of this load of the driver: an error that was before this process
// counts as well, since the row may be in use until a reset.
func standing(uuid string, h Health) (out []Fault) {
	add := func(k Kind, code uint64, format string, args ...any) {
		out = append(out, fault(uuid, k, code, format, args...))
	}
	if h.Uncorrectable.N > 0 {
		add(KindUncorrectable, h.Uncorrectable.N, "%d since the driver was loaded or the GPU reset: reset it", h.Uncorrectable.N)
	}
	if h.RemapFailed.N > 0 {
		add(KindRemapFailed, 0, "replace the GPU")
	}
	if h.RemapPending.N > 0 {
		add(KindRemapPending, 0, "reset the GPU")
	}
	if h.RetirePending.N > 0 {
		add(KindRetirePending, 0, "reset the GPU or load the driver anew")
	}
	if r := h.Recovery; r.N > 0 {
		text := fmt.Sprintf("action %d", r.N)
		if r.N < uint64(len(recoveries)) {
			text = recoveries[r.N]
		}
		f := fault(uuid, KindReset, r.N, "the driver asks: %s", text)
		f.Fatal = r.N != recoveryDrain
		out = append(out, f)
	}
	return out
}

// changes are the faults that two looks at a card show, with those standing.
func changes(uuid string, before, now Health) []Fault {
	out := standing(uuid, now)
	for _, c := range [...]struct {
		name     string
		was, now Counter
	}{{"uncorrectable", before.Uncorrectable, now.Uncorrectable}, {"corrected", before.Corrected, now.Corrected}} {
		if c.was.Known && c.now.Known && c.now.N < c.was.N {
			// A reset with clients is not allowed, but who may clear counts may; CUDA's calls tell the two apart.
			out = append(out, fault(uuid, KindReset, 0, "the count of %s errors fell from %d to %d: it was cleared, or the GPU was reset while in use", c.name, c.was.N, c.now.N))
		}
	}
	was := map[int]Link{}
	for _, l := range before.Links {
		was[l.Number] = l
	}
	for _, l := range now.Links {
		w, had := was[l.Number]
		if !had || !w.Up {
			continue
		}
		if !l.Up {
			out = append(out, fault(uuid, KindLinkDown, uint64(l.Number), "link %d was up", l.Number))
			continue
		}
		var more []string
		for k, n := range l.Errors {
			if n > w.Errors[k] {
				more = append(more, fmt.Sprintf("%d %s", n-w.Errors[k], linkErrors[k]))
			}
		}
		if len(more) > 0 {
			out = append(out, fault(uuid, KindLinkErrors, uint64(l.Number), "link %d: %s", l.Number, strings.Join(more, ", ")))
		}
	}
	return out
}

// Text is a line for people.
func (h Health) Text() string {
	say := func(name string, c Counter) string {
		if !c.Known {
			return name + " not known"
		}
		return fmt.Sprintf("%s %d", name, c.N)
	}
	ecc := "ECC not known"
	if h.ECC.Known {
		ecc = [...]string{"ECC off: bad bits are not seen", "ECC on"}[min(h.ECC.N, 1)]
	}
	up := 0
	for _, l := range h.Links {
		if l.Up {
			up++
		}
	}
	return fmt.Sprintf("%s, %s, %s, %s, %s, NVLinks up %d of %d", ecc, say("uncorrectable", h.Uncorrectable), say("corrected", h.Corrected),
		say("remap pending", h.RemapPending), say("remap failed", h.RemapFailed), up, len(h.Links))
}
