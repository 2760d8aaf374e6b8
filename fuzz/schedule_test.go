package fuzz

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/sim"
)

// streams are the scheduler's kinds of choices that a schedule decides; "order" says which of the things that can happen does.
func scheduleStreams() []string {
	return []string{"order", "order", "order", "jitter", "work", "packets", "loss", "loose", "dial", "ending"}
}

// schedule is a run of the simulator made of fuzzed bytes: a small cluster, requests and faults at their steps, and the choices of the
// scheduler. Nothing in it is random.
func schedule(b []byte) *sim.Script {
	t := NewTape(b)
	c := sim.Config{
		Prefill: []int{1 + t.N(2)}, Decode: []int{1 + t.N(2)}, PrefillPages: uint32(4 + t.N(8)), DecodePages: uint32(4 + t.N(8)), Window: 64,
		Chunk: uint32(3 + t.N(6)), Channels: uint32(1 + t.N(2)), Pull: t.One(3), Sharing: t.N(3) * 4, Drift: t.One(4), Answers: t.N(3) * 2,
	}
	if t.One(4) {
		c.Prefill = append(c.Prefill, 1)
	}
	if t.One(4) {
		c.Decode = append(c.Decode, 1)
	}
	if t.One(3) {
		c.Net = sim.NetFaults{Drop: t.N(10), Duplicate: t.N(10), Reorder: t.N(30)}
	}
	kinds := sim.Kinds()
	s := &sim.Script{Version: 1, Expect: sim.Kept, Config: c, Choices: map[string][]string{}}
	for at, n := 0, 1+t.N(24); n > 0; n-- {
		at += t.N(64)
		act := sim.Act{At: at, Do: sim.Ask, P: t.N(2), D: t.N(2), Rank: t.N(2), Nth: int(t.Byte()), N: int(t.Byte())}
		if !t.One(2) && len(s.Acts) > 0 {
			act.Do = kinds[t.N(len(kinds))].Kind
		}
		switch act.Do {
		case sim.Ask, sim.Half:
			act.Req = &sim.Submit{Tenant: string(rune('a' + t.N(2))), New: uint32(t.N(6)), LeftMs: t.N(2) * 1000 * t.N(20)}
			first := t.N(3)
			for i := range t.N(30) {
				act.Req.Prompt = append(act.Req.Prompt, int32(first*100+i))
			}
		case sim.Resize:
			act.N = 2 + act.N%16
		}
		s.Acts = append(s.Acts, act)
	}
	s.Acts = append(s.Acts, sim.Act{At: s.Acts[len(s.Acts)-1].At + t.N(200), Do: sim.Heal})
	next := map[string]int{}
	for !t.Over() {
		stream := scheduleStreams()[t.N(len(scheduleStreams()))]
		at := next[stream] + t.N(16)
		next[stream] = at + 1
		value := int(t.Byte()) << (8 * t.N(3))
		s.Choices[stream] = append(s.Choices[stream], fmt.Sprintf("%d:%d", at, value))
	}
	return s
}

// FuzzSchedule: whatever happens in whatever order, the simulator's oracles hold: nobody reads another's bytes, every request has one honest
// answer, every page comes back when the faults are over. The input is the schedule; the same one twice is the same run.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 4, 4, 3, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 1, 3, 0, 0, 1, 12, 5, 0, 0, 0, 0, 0, 1, 1, 20, 0, 0, 0, 7, 40})
	f.Add([]byte{1, 1, 2, 1, 5, 1, 2, 1, 3, 2, 3, 3, 2, 3, 4, 20, 9, 1, 1, 0, 7, 3, 1, 0, 4, 2, 1, 11, 1, 30, 0, 0, 1, 2, 9, 0, 25, 60, 1, 1, 1, 3, 2, 1, 40, 9, 9, 9, 9, 0, 1, 4, 2, 3, 1, 3, 4, 200, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := schedule(b[:min(len(b), 2048)])
		text, err := s.Text()
		require.NoError(t, err)
		again, err := sim.ParseScript(text)
		require.NoError(t, err, "%s", text)
		out, err := again.Play(nil)
		require.NoError(t, err, "the schedule as a script:\n%s", text)
		if len(b)%16 == 0 { // now and then: it costs as much as the run
			twice, err := s.Play(nil)
			require.NoError(t, err)
			require.Equal(t, out.Hash, twice.Hash, "the same schedule is another run:\n%s", text)
		}
	})
}

// FuzzScenario: a scenario file is refused by name, or it is a script that writes the same file again, within bounds that no file exceeds.
func FuzzScenario(f *testing.F) {
	text, err := schedule([]byte{1, 1, 2, 1, 5, 1, 2, 1, 3, 2, 3, 3, 2, 3, 4, 20, 9, 1, 1, 0, 7}).Text()
	require.NoError(f, err)
	f.Add(text, "3..9", "1/2")
	f.Add([]byte("kvfence-scenario: 1\nexpect: kept\nconfig: {prefill: [1], decode: [2]}\nacts: []\nchoices: {order: ['0:1 1:2']}\n"), "7", "2/2")
	f.Add([]byte("kvfence-scenario: 2\n"), "9..3", "0/0")
	f.Fuzz(func(t *testing.T, text []byte, seeds, shard string) {
		if s, err := sim.ParseScript(text); err != nil {
			require.ErrorIs(t, err, sim.ErrScript)
			require.Nil(t, s)
		} else {
			out, err := s.Text()
			require.NoError(t, err)
			again, err := sim.ParseScript(out)
			require.NoError(t, err, "%s", out)
			twice, err := again.Text()
			require.NoError(t, err)
			require.Equal(t, string(out), string(twice))
			require.LessOrEqual(t, len(s.Config.Prefill)+len(s.Config.Decode), 16)
		}
		if r, err := sim.ParseResult(text); err == nil {
			out, err := r.Text()
			require.NoError(t, err)
			_, err = sim.ParseResult(out)
			require.NoError(t, err)
		}
		if _, count, err := sim.ParseSeeds(seeds); err == nil {
			require.Positive(t, count)
		}
		if i, n, err := sim.ParseShard(shard); err == nil {
			require.True(t, 0 <= i && i < n)
		}
	})
}

// The oracles can tell: of a few hundred schedules of noise one catches a driver that says too early that nothing is read any more, and one
// that does not fence.
func TestSchedule_PlantedBugs_AreFound(t *testing.T) {
	for name, plant := range map[string]sim.Plant{"posted early": {PostedEarly: true}, "fence early": {FenceEarly: true}} {
		r := rand.New(rand.NewPCG(7, 7))
		var err error
		n := 0
		for ; n < 600 && err == nil; n++ {
			b := make([]byte, 200+r.IntN(600))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			_, err = schedule(b).Play(func(c *sim.Config) { c.Plant = plant })
		}
		t.Logf("%s: schedule %d: %v", name, n, err)
		require.ErrorIs(t, err, sim.ErrViolation, name)
	}
}
