package check

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/sim"
	"kvfence/model/follow"
	"kvfence/spec"
)

var (
	alteredSeeds = flag.Uint64("check.seeds", 5, "seeds whose traces are altered")
	alteredEach  = flag.Int("check.each", 2, "alterations of each kind in each trace")
)

// record is the trace of one seed of the simulator.
func record(t *testing.T, seed uint64) []spec.TraceLine {
	var lines []spec.TraceLine
	_, err := sim.Run(seed, func(c *sim.Config) {
		c.Line = func(l *spec.TraceLine) error {
			lines = append(lines, copyOf(t, l))
			return nil
		}
	})
	require.NoError(t, err)
	return lines
}

func copyOf(t *testing.T, l *spec.TraceLine) (out spec.TraceLine) {
	b, err := json.Marshal(l)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// place is where a trace is altered.
type place struct{ line, did, out int }

// alteration is one kind: where it can be done, and how.
type alteration struct {
	name  string
	where func(lines []spec.TraceLine) []place
	alter func(lines []spec.TraceLine, at place) []spec.TraceLine
}

func eachDid(name string, also func(l *spec.TraceLine, d *spec.TraceDid) bool) func([]spec.TraceLine) []place {
	return func(lines []spec.TraceLine) (all []place) {
		for i := range lines {
			for j := range lines[i].Did {
				if d := &lines[i].Did[j]; (name == "" || d.Name == name) && (also == nil || also(&lines[i], d)) {
					all = append(all, place{i, j, -1})
				}
			}
		}
		return all
	}
}

func eachOut(kind, message string, also func(o *spec.TraceOut) bool) func([]spec.TraceLine) []place {
	return func(lines []spec.TraceLine) (all []place) {
		for i := range lines {
			for j := range lines[i].Out {
				if o := &lines[i].Out[j]; o.Kind == kind && (message == "" || o.Message == message) && (also == nil || also(o)) {
					all = append(all, place{i, -1, j})
				}
			}
		}
		return all
	}
}

func eachLine(is func(l *spec.TraceLine) bool) func([]spec.TraceLine) []place {
	return func(lines []spec.TraceLine) (all []place) {
		for i := range lines {
			if is(&lines[i]) {
				all = append(all, place{i, -1, -1})
			}
		}
		return all
	}
}

// changeDid and changeOut alter one thing in place.
func changeDid(change func(d *spec.TraceDid)) func([]spec.TraceLine, place) []spec.TraceLine {
	return func(lines []spec.TraceLine, at place) []spec.TraceLine {
		change(&lines[at.line].Did[at.did])
		return lines
	}
}

func changeOut(change func(o *spec.TraceOut)) func([]spec.TraceLine, place) []spec.TraceLine {
	return func(lines []spec.TraceLine, at place) []spec.TraceLine {
		change(&lines[at.line].Out[at.out])
		return lines
	}
}

func removeDid(lines []spec.TraceLine, at place) []spec.TraceLine {
	l := &lines[at.line]
	l.Did = slices.Delete(l.Did, at.did, at.did+1)
	for i := range l.Out {
		if l.Out[i].After > at.did {
			l.Out[i].After--
		}
	}
	return lines
}

func removeOut(lines []spec.TraceLine, at place) []spec.TraceLine {
	l := &lines[at.line]
	l.Out = slices.Delete(l.Out, at.out, at.out+1)
	return lines
}

func drop(lines []spec.TraceLine, at place) []spec.TraceLine {
	return slices.Delete(lines, at.line, at.line+1)
}

func double(lines []spec.TraceLine, at place) []spec.TraceLine {
	return slices.Insert(lines, at.line+1, lines[at.line])
}

// before moves a line to just before the first line that is such.
func before(is func(l, moved *spec.TraceLine) bool) func([]spec.TraceLine, place) []spec.TraceLine {
	return func(lines []spec.TraceLine, at place) []spec.TraceLine {
		moved := lines[at.line]
		for i := range at.line {
			if is(&lines[i], &moved) {
				return slices.Insert(slices.Delete(lines, at.line, at.line+1), i, moved)
			}
		}
		return nil
	}
}

// puts and says look for a message or an action.
func puts(l *spec.TraceLine, message string, lease spec.LeaseID, t spec.TraceTransfer) bool {
	return slices.ContainsFunc(l.Out, func(o spec.TraceOut) bool {
		return o.Kind == "Send" && o.Message == message && o.Lease == lease && o.Transfer == t
	})
}

func says(l *spec.TraceLine, names ...string) bool {
	return slices.ContainsFunc(l.Did, func(d spec.TraceDid) bool { return slices.Contains(names, d.Name) })
}

func hears(message string, names ...string) func(l *spec.TraceLine) bool {
	return func(l *spec.TraceLine) bool {
		return l.Event.Kind == "Recv" && l.Event.Message == message && says(l, names...)
	}
}

func sender(message string) func(l, moved *spec.TraceLine) bool {
	return func(l, moved *spec.TraceLine) bool {
		return l.Node == moved.Event.From && puts(l, message, moved.Event.Lease, moved.Event.Transfer)
	}
}

// TestAltered_Traces_AreRefused alters good traces, recorded from runs of the simulator with requests and faults, pushed, pulled and
// shared, and demands that each is refused, at the altered line or behind it.
func TestAltered_Traces_AreRefused(t *testing.T) {
	refused, made, first := map[string]int{}, map[string]int{}, map[string]string{}
	kinds := alterations()
	for seed := uint64(1); seed <= *alteredSeeds; seed++ {
		good := record(t, seed)
		_, found, err := Lines(good, true)
		require.NoError(t, err)
		require.Empty(t, found, "seed %d as it was recorded", seed)
		rng := rand.New(rand.NewPCG(seed, 0x616c746572))
		for _, k := range kinds {
			all := k.where(good)
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			n := 0
			for _, at := range all {
				if n == *alteredEach {
					break
				}
				work := slices.Clone(good)
				work[at.line] = copyOf(t, &good[at.line])
				if work = k.alter(work, at); work == nil {
					continue
				}
				n++
				made[k.name]++
				if v := judged(work); v != "" {
					refused[k.name]++
				} else if first[k.name] == "" {
					b, _ := json.Marshal(good[at.line])
					first[k.name] = fmt.Sprintf("seed %d line %d: %.1500s", seed, at.line+1, b)
				}
			}
		}
	}
	report(t, made, refused, first)
}

func judged(lines []spec.TraceLine) string {
	_, found, err := firstOf(lines)
	if err != nil {
		return err.Error()
	}
	if found != nil {
		return found.Error()
	}
	return ""
}

func firstOf(lines []spec.TraceLine) (int, *follow.Violation, error) {
	f := follow.New(true)
	for i := range lines {
		err := f.Step(&lines[i])
		var v *follow.Violation
		if errors.As(err, &v) {
			return i, v, nil
		} else if err != nil {
			return i, nil, err
		}
	}
	return len(lines), nil, nil
}

func report(t *testing.T, made, refused map[string]int, first map[string]string) {
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(made)) {
		fmt.Fprintf(&text, "%-40s %4d of %4d\n", k, refused[k], made[k])
	}
	t.Logf("refused:\n%s", text.String())
	for _, k := range slices.Sorted(maps.Keys(made)) {
		why, ok := harmless()[k]
		if strings.HasPrefix(k, "line dropped: ") && !ok {
			why, ok = "where nothing that comes later depends on it: that lease, link or machine does nothing more", true
		}
		if ok {
			require.NotEmpty(t, why)
			require.True(t, refused[k] > 0 || made[k] < 5, "%s is never refused", k)
			continue
		}
		require.Equal(t, made[k], refused[k], "%s was accepted: %s", k, first[k])
	}
}
