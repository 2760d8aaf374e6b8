package trace

import (
	"bytes"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/spec"
)

// gate is a file that takes nothing before it is opened.
type gate struct {
	bytes.Buffer
	open chan struct{}
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(b)
}

func (g *gate) Close() error { return nil }

func read(t *testing.T, b []byte) (all []spec.TraceLine) {
	r := NewReader(bytes.NewReader(b))
	for {
		var l spec.TraceLine
		err := r.Next(&l)
		if err == io.EOF {
			require.NoError(t, r.Torn())
			return all
		}
		require.NoError(t, err)
		all = append(all, l)
	}
}

// A file that is too slow keeps nobody waiting: lines are lost, and the trace says how many.
func TestWriter_SlowFile_LosesLinesAndSaysSo(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	w := NewWriter(g)
	line := spec.TraceLine{Node: spec.Incarnation{1}, Machine: spec.TraceDecode, Event: spec.TraceEvent{Kind: "Tick"}}
	n := 3 * waiting
	for range n {
		w.Write(line)
	}
	close(g.open)
	for w.Waiting() > waiting/2 {
		runtime.Gosched()
	}
	w.Write(line) // the first that has room says how many had none
	n++
	require.NoError(t, w.Close())
	w.Write(line) // after the end: nothing
	lost, kept := 0, 0
	for _, l := range read(t, g.Bytes()) {
		if l.Event.Kind == "Lost" {
			lost += int(l.Event.Number)
		} else {
			kept++
		}
	}
	require.Positive(t, lost)
	require.Equal(t, n, lost+kept)
}

func TestWriter_SeveralLoops_WholeLines(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	w := NewWriter(g)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			m := NewMachine(spec.Incarnation{byte(i + 1)}, spec.TraceDecode)
			for j := range 500 {
				if l, any := m.Step(core.Time(j), core.NoticeIn{Lease: spec.LeaseID(j)}, nil); any {
					w.Write(l)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Close())
	require.Len(t, read(t, g.Bytes()), 2000)
	_, any := NewMachine(spec.Incarnation{1}, spec.TraceDecode).Step(1, core.Tick{}, nil)
	require.False(t, any)
	(*Writer)(nil).Write(spec.TraceLine{})
	require.NoError(t, (*Writer)(nil).Close())
}
