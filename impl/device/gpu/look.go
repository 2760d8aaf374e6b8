//go:build cuda && cgo && linux

package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Health looks at the card once.
func (c *Card) Health() (Health, error) {
	h, err := c.handle()
	if err != nil {
		return Health{}, err
	}
	type found struct {
		h   Health
		err error
	}
	f, err := call(c.calls, 0, func() (f found) {
		l := look{card: c, h: h}
		l.all()
		return found{l.out, l.err}
	})
	if err == nil {
		err = f.err
	}
	if err != nil {
		return Health{}, fmt.Errorf("health of GPU %d: %w", c.info.Index, err)
	}
	return f.h, nil
}

// look is one round of questions, which ends at the first error that is not the absence of what was asked for.
type look struct {
	card *Card
	h    handle
	out  Health
	err  error
}

// may reports whether the next question can be put.
func (l *look) may(symbol string) bool {
	if l.err != nil || !l.card.all.syms.has[symbol] {
		return false
	}
	l.card.calls.step(symbol)
	return true
}

// got reports whether there is an answer.
func (l *look) got(symbol string, ret nvml.Return) bool {
	if ret == nvml.SUCCESS {
		return true
	}
	if !absent(ret) {
		l.err = failed(symbol, ret)
	}
	return false
}

func (l *look) all() {
	if l.may(symECCMode) {
		if on, _, ret := l.h.GetEccMode(); l.got(symECCMode, ret) {
			l.out.ECC = Counter{true, uint64(on)}
		}
	}
	l.out.Uncorrectable, l.out.Corrected = l.errors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED), l.errors(nvml.MEMORY_ERROR_TYPE_CORRECTED)
	if l.may(symRemapped) {
		if _, _, pending, bad, ret := l.h.GetRemappedRows(); l.got(symRemapped, ret) {
			l.out.RemapPending, l.out.RemapFailed = flag(pending), flag(bad)
		}
	}
	if l.may(symRetired) {
		if on, ret := l.h.GetRetiredPagesPendingStatus(); l.got(symRetired, ret) {
			l.out.RetirePending = flag(on == nvml.FEATURE_ENABLED)
		}
	}
	l.recovery()
	l.links()
}

// errors is a volatile count of all of the card's memories.
func (l *look) errors(kind nvml.MemoryErrorType) (c Counter) {
	if l.may(symECC) {
		if n, ret := l.h.GetTotalEccErrors(kind, nvml.VOLATILE_ECC); l.got(symECC, ret) {
			c = Counter{true, n}
		}
	}
	return c
}

func flag(b bool) Counter {
	if b {
		return Counter{true, 1}
	}
	return Counter{Known: true}
}

// recovery reads what the driver asks for; drivers before R565 do not know the field.
func (l *look) recovery() {
	if !l.may(symFields) {
		return
	}
	v := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if ret := l.h.GetFieldValues(v); ret == nvml.ERROR_INVALID_ARGUMENT || !l.got(symFields, ret) || nvml.Return(v[0].NvmlReturn) != nvml.SUCCESS {
		return
	}
	switch nvml.ValueType(v[0].ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		l.out.Recovery = Counter{true, uint64(binary.NativeEndian.Uint32(v[0].Value[:]))}
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		l.out.Recovery = Counter{true, binary.NativeEndian.Uint64(v[0].Value[:])}
	}
}

func (l *look) links() {
	for k := range nvml.NVLINK_MAX_LINKS {
		if !l.may(symLink) {
			return
		}
		on, ret := l.h.GetNvLinkState(k)
		if ret == nvml.ERROR_INVALID_ARGUMENT || !l.got(symLink, ret) { // the former: behind the last
			return
		}
		link := Link{Number: k, Up: on == nvml.FEATURE_ENABLED}
		for e := range link.Errors {
			if link.Up && l.may(symLinkErrors) {
				if n, ret := l.h.GetNvLinkErrorCounter(k, nvml.NvLinkErrorCounter(e)); ret == nvml.SUCCESS {
					link.Errors[e] = n
				} else if ret != nvml.ERROR_INVALID_ARGUMENT && !l.got(symLinkErrors, ret) {
					break
				}
			}
		}
		l.out.Links = append(l.out.Links, link)
	}
}

// of makes the fault that the failure of a call is.
func (c *Card) of(err error) Fault {
	var e callError
	if errors.As(err, &e) {
		switch e.ret {
		case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_GPU_NOT_FOUND:
			return fault(c.info.UUID, KindLost, 0, "%s", err)
		case nvml.ERROR_RESET_REQUIRED:
			f := fault(c.info.UUID, KindReset, 0, "%s", err)
			f.Fatal = true
			return f
		}
	}
	return fault(c.info.UUID, KindBlind, 0, "%s", err)
}
