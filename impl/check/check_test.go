package check

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/trace"
	"kvfence/model/follow"
	"kvfence/spec"
)

// write puts lines into a file as a node does.
func write(t *testing.T, name string, lines []spec.TraceLine) string {
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	require.NoError(t, err)
	w := trace.NewWriter(f)
	for _, l := range lines {
		for w.Waiting() > 1000 {
			time.Sleep(time.Millisecond)
		}
		w.Write(l)
	}
	require.NoError(t, w.Close())
	return path
}

// nodes splits a trace into files, one for each node.
func nodes(t *testing.T, lines []spec.TraceLine, is func(l *spec.TraceLine) bool) (files []string) {
	by, order := map[spec.Incarnation][]spec.TraceLine{}, []spec.Incarnation{}
	leader := map[spec.Incarnation]spec.Incarnation{}
	for _, l := range lines {
		if s := l.Event.Start; s != nil && len(s.Side) > 0 {
			leader[l.Node] = s.Side[0]
		}
		if !is(&l) {
			continue
		}
		side := leader[l.Node]
		if by[side] == nil {
			order = append(order, side)
		}
		by[side] = append(by[side], l)
	}
	for _, n := range order {
		files = append(files, write(t, n.Hex()+".ndjson", by[n]))
	}
	return files
}

func isDecode(l *spec.TraceLine) bool { return strings.HasPrefix(string(l.Machine), "decode") }

func checked(t *testing.T, o Options) Result {
	var first string
	o.Violation = func(v *follow.Violation) { first = v.Error() }
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Violations, first)
	return r
}

// The traces of several processes are merged by what each heard of the others; each alone is checked with the other ends believed.
func TestRun_FilesOfNodes_AreMergedOrBelieved(t *testing.T) {
	for seed := uint64(1); seed <= 16; seed++ {
		lines := record(t, seed)
		whole := checked(t, Options{Files: []string{write(t, "all.ndjson", lines)}, Strict: true})
		require.Equal(t, len(lines), whole.Lines)
		require.Zero(t, whole.Torn)
		merged := checked(t, Options{Files: nodes(t, lines, func(*spec.TraceLine) bool { return true }), Strict: true})
		require.Equal(t, len(lines), merged.Lines, "seed %d", seed)
		require.Equal(t, whole.Actions, merged.Actions)
		alone := checked(t, Options{Files: nodes(t, lines, isDecode)})
		require.Positive(t, alone.Believed)
		checked(t, Options{Files: nodes(t, lines, func(l *spec.TraceLine) bool { return !isDecode(l) })})
	}
}

func TestRun_BrokenFiles_AreSaidToBe(t *testing.T) {
	lines := record(t, 1)
	path := write(t, "a.ndjson", lines[:300])
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	try := func(text string) error {
		p := filepath.Join(t.TempDir(), "b.ndjson")
		require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
		_, err := Run(context.Background(), Options{Files: []string{p}})
		return err
	}
	require.NoError(t, try(string(good)))
	require.ErrorIs(t, try(string(good[:len(good)-5])), trace.ErrTorn)
	require.ErrorIs(t, try("{}\n"), trace.ErrLine)
	require.ErrorIs(t, try(strings.Replace(string(good), `"at":`, `"att":`, 1)), trace.ErrLine)
	require.ErrorIs(t, try(string(good)+"{} {}\n"), trace.ErrLine)
	require.ErrorIs(t, try(strings.Replace(string(good), `"version":1`, `"version":2`, 1)), follow.ErrTrace)
	hole, err := json.Marshal(spec.TraceLine{Machine: spec.TraceWorld, Event: spec.TraceEvent{Kind: "Lost", Number: 3}})
	require.NoError(t, err)
	require.ErrorIs(t, try(string(good)+string(hole)+"\n"), follow.ErrTrace)
	_, err = Run(context.Background(), Options{Files: []string{filepath.Join(t.TempDir(), "none")}})
	require.ErrorIs(t, err, ErrFile)
}

// A file that grows is watched; what is wrong is said as it comes.
func TestRun_Follow_SaysViolationsAsTheyCome(t *testing.T) {
	lines := record(t, 2)
	path := filepath.Join(t.TempDir(), "live.ndjson")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	enc := json.NewEncoder(f)
	found := make(chan *follow.Violation, 1)
	done := make(chan Result, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		r, _ := Run(ctx, Options{Files: []string{path}, Follow: true, Violation: func(v *follow.Violation) { found <- v }})
		done <- r
	}()
	bad := 0
	for i := range lines {
		l := lines[i]
		if at := says(&l, "Grant"); at && bad == 0 && i > len(lines)/2 {
			l = copyOf(t, &l)
			for j := range l.Did {
				if l.Did[j].Name == "Grant" {
					l.Did[j].Lease += 7
				}
			}
			bad = i + 1
		}
		require.NoError(t, enc.Encode(l))
		if bad > 0 && i > bad+5 {
			break
		}
	}
	require.Positive(t, bad)
	v := <-found
	require.Equal(t, bad, v.Line)
	require.Equal(t, 1, (<-done).Violations)
}
