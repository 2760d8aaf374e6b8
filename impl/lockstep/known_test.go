package lockstep

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// What is found in one page of a lease of two keeps that page; the other one is free at once. In the specification both stay.
func TestKnown_GoodPagesOfABadLease_ComeBackAtOnce(t *testing.T) {
	set, err := Setting{Name: "torn-record", KV: 1, Aux: 1, Source: 1, Prompt: 1, Constants: map[string]string{"NQ": "2", "NE": "1", "PlantTorn": "TRUE"}}.fill()
	require.NoError(t, err)
	r, err := set.replay(3)
	require.NoError(t, err)
	require.NotZero(t, r.Different)
	for _, d := range r.Differences {
		require.True(t, strings.HasPrefix(d.What, "own: the engine has") && !strings.Contains(d.What, ";"), "it shows in nothing else: %s", d.What)
		require.Contains(t, strings.Join(d.Path, " "), "BadVerify")
	}
}

// walkTo does actions one after the other, by name and parameters, in a setting without leaders.
func walkTo(t *testing.T, name string, steps ...edge) *World {
	set, ok := Find(name)
	require.True(t, ok)
	w, err := New(&set, false)
	require.NoError(t, err)
	for _, e := range steps {
		require.NoError(t, w.Do(e.name, &e.args), show(e))
	}
	return w
}

func filled(end ...edge) []edge {
	one, page := model.Args{L: 1}, model.Args{L: 1, Q: 1}
	steps := []edge{{"Grant", model.Args{T: 1, L: 1, S: 1, Ks: 1}}, {"Start", model.Args{T: 1, L: 1}}, {"TakeSource", page}, {"Compute", page}, {"Seal", page}, {"Post", page}, {"Notice", one},
		{"Launch", page}, {"Complete", one}, {"Check", one}, {"Copy", one}, {"NoticeIn", one}, {"RecvComplete", model.Args{L: 1, X: 1}}}
	return append(steps, end...)
}

// A check that had begun when its lease was given up: what it finds is quarantined. In the specification the lease would be released.
func TestKnown_CheckOfALeaseGivenUp_QuarantinesWhatItFinds(t *testing.T) {
	one := model.Args{L: 1}
	w := walkTo(t, "torn", filled(edge{"Torn", one}, edge{"Take", one}, edge{"Abort", one})...)
	require.Equal(t, model.DstRevoking, w.Project().Dst[1])
	w.endVerify(1)
	w.note()
	require.NoError(t, w.err)
	require.Equal(t, model.DstBad, w.Project().Dst[1])
	require.Equal(t, uint8(1), w.Project().Own[0], "its page stays until the fence is back")
	w.fenceEnd(0)
	w.note()
	require.Equal(t, model.DstFailed, w.Project().Dst[1])
	require.Zero(t, w.Project().Own[0])
}

// A page that is taken and given back before a grant is sent has another generation, which nobody was granted.
func TestKnown_TakenInVain_GenerationIsNotTheSpecifications(t *testing.T) {
	w := walkTo(t, "push")
	before := w.Project()
	id := spec.TransferID{Leader: inc('d', 0, 0), Counter: 77}
	w.stepD(core.Side{Msg: core.Take{Transfer: id, Tokens: 1, Prefill: []core.PeerID{1}}})
	w.lease[1] = lease{}
	w.stepD(core.Side{Msg: core.AbortLease{Transfer: id, Cause: spec.CauseClientGone}})
	w.note()
	require.NoError(t, w.err)
	require.Equal(t, spec.Generation(1), w.d.Detail(spec.KV, 0).Gen)
	require.Equal(t, before, w.Project())
}

// No lease is granted while a quarantine waits for a link to owe nothing; settings where that shows are too large to be pinned.
func TestKnown_GrantWhileAQuarantineWaits_IsNotTaken(t *testing.T) {
	one := model.Args{L: 1}
	w := walkTo(t, "bystander", append(filled()[:1], edge{"Grant", model.Args{T: 2, L: 2, S: 2, Ks: 1}})...)
	for _, e := range filled(edge{"Torn", one}, edge{"Take", one}, edge{"BadVerify", one})[1:] {
		require.NoError(t, w.Do(e.name, &e.args), show(e))
	}
	require.Equal(t, model.DstBad, w.Project().Dst[1])
	next := w.next
	w.grant(&model.Args{T: 3, L: 3})
	require.NoError(t, w.err)
	require.Equal(t, next, w.next)
}
