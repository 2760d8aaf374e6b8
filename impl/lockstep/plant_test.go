package lockstep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// behind plants something behind the stimulus of an action.
func behind(set *Setting, action string, plant func(w *World, a *model.Args)) {
	do := set.executors[action]
	set.executors[action] = func(w *World, a *model.Args) {
		do(w, a)
		plant(w, a)
	}
}

// Each planted fault of an engine, or of the comparison itself, must be found, and named by the variable in which it shows.
func TestReplay_PlantedDifference_IsFound(t *testing.T) {
	for name, c := range map[string]struct {
		setting, shows string
		plant          func(set *Setting)
	}{
		"an AbortAck before the drain": {"push", "ans", func(set *Setting) {
			behind(set, "RecvAbort", func(w *World, a *model.Args) {
				if w.pendingAt(a.L, a.K, stageQueued) {
					x := &w.lease[a.L]
					w.answers[answerKey{model.KindAck, a.L, a.K, w.pinc[a.K]}] = core.Send{Peer: pid(x.dinc), Env: spec.Envelope{Body: spec.AbortAck{Lease: x.id}}}
				}
			})
		}},
		"a wrong generation in a write's tag": {"push", "the check of lease 1 finds", func(set *Setting) {
			behind(set, "Post", func(w *World, _ *model.Args) { w.writes[len(w.writes)-1].item.Tag.Gen++ })
		}},
		"a page handed out again without raising its generation": {"reuse", "gen", func(set *Setting) {
			behind(set, "Grant", func(w *World, _ *model.Args) { w.gens[0] = w.gens[0][:1] })
		}},
		"tags that are not voided at hand-out": {"reuse", "tagl", func(set *Setting) {
			do := set.executors["Grant"]
			set.executors["Grant"] = func(w *World, a *model.Args) {
				was := w.mem
				do(w, a)
				w.mem = was
			}
		}},
		"a timeout that frees, and fences nothing": {"push", "its grant table", func(set *Setting) {
			behind(set, "Abort", func(w *World, _ *model.Args) {
				w.d.Step(w.now, core.ConnLost{Peer: 1, Conn: w.links[0].conn})
				w.d.Step(w.now, core.FenceDone{Peer: 1, Old: 1, OK: true})
			})
		}},
		"a fence that does not stop the source": {"fence", "queued", func(set *Setting) {
			do := set.executors["PrefillFence"]
			set.executors["PrefillFence"] = func(w *World, a *model.Args) {
				was := make([]stage, len(w.writes))
				for i, x := range w.writes {
					was[i] = x.stage
				}
				do(w, a)
				for i, x := range w.writes {
					x.stage = was[i]
				}
			}
		}},
		"a receipt that is lost at the rank": {"push", "hold", func(set *Setting) {
			set.executors["Take"] = func(w *World, a *model.Args) { delete(w.rec, answerKey{a.C, a.L, a.K, a.I}) }
		}},
		"a source page that comes back while its write is queued": {"push", "sown", func(set *Setting) {
			do := set.executors["GiveBack"]
			set.executors["GiveBack"] = func(w *World, a *model.Args) { w.lease[a.L].at[a.K].over = true; _ = do }
		}},
		"another prompt's pages taken for this one's": {"push", "pview", func(set *Setting) {
			behind(set, "Start", func(w *World, a *model.Args) { w.lease[a.L].at[a.K].view = model.ViewSame })
		}},
		"bytes that were never written": {"torn", "mem", func(set *Setting) {
			behind(set, "Torn", func(w *World, a *model.Args) { w.mem[a.P][a.K].content = a.L })
		}},
		"a share of another tenant's page": {"domains", "own", func(set *Setting) { set.Twin.Tenant = []string{"t1", "t1"} }},
		"an answer of success before its verdict": {"life", "http", func(set *Setting) {
			behind(set, "Run", func(w *World, a *model.Args) { w.tr[a.T].http = model.HTTP200 })
		}},
		"a mark that is above a standing hold": {"push", "dmark", func(set *Setting) {
			behind(set, "RaiseMark", func(w *World, a *model.Args) { w.links[a.K].dmark++ })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, ok := Find(c.setting)
			require.True(t, ok)
			c.plant(&set)
			share := 61
			if c.setting == "push" {
				share = 5
			}
			r, err := set.replay(share)
			require.NoError(t, err)
			require.NotZero(t, r.Different)
			found := ""
			for _, d := range r.Differences {
				found += d.What + "\n"
			}
			require.Contains(t, found, c.shows)
		})
	}
}
