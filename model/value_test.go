package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormal_TLCSyntax_SortedOneForm(t *testing.T) {
	for tlc, want := range map[string]string{
		"0": "0", "TRUE": "TRUE", " p1\n": "p1", `"new"`: `"new"`, "<<>>": "<<>>", "{}": "{}", "<< 1,2 >>": "<<1, 2>>",
		"{p2, p1}": "{p1, p2}",
		"{<<1, k2, 0>>, <<1, k1, 0>>, <<1, k1, 0>>}":     "{<<1, k1, 0>>, <<1, k2, 0>>}",
		"(p2 :> 0 @@ p1 :> 1)":                           "(p1 :> 1 @@ p2 :> 0)",
		"( <<1, k1>> :> FALSE @@\n  <<1, k2>> :> TRUE )": "(<<1, k1>> :> FALSE @@ <<1, k2>> :> TRUE)",
		"(2 :> b @@ 1 :> a)":                             "<<a, b>>",
		"(0 :> b @@ 1 :> a)":                             "(0 :> b @@ 1 :> a)",
		`<<"open", "new">>`:                              `<<"open", "new">>`,
		"{{2, 1}, {}}":                                   "{{1, 2}, {}}",
	} {
		got, err := Normal(tlc)
		require.NoError(t, err, tlc)
		require.Equal(t, want, got)
		again, err := Normal(got)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestNormal_NotAValue_IsRefused(t *testing.T) {
	for _, bad := range []string{
		"", "{", "{1", "{1 2}", "<<1>", "1 2", "[a |-> 1]", "1..3", `"open`, "(1 :> )", "(1 2)", "(1 :> 2", "(1 :> 2 @ 3 :> 4)", "{,}", "()", strings.Repeat("{", 100),
	} {
		_, err := Normal(bad)
		require.ErrorIs(t, err, ErrValue, bad)
	}
}

func TestValue_ReachedStates_AreInNormalForm(t *testing.T) {
	for _, name := range []string{"gone", "share", "channels"} {
		twin, states := reached(t, name, 300)
		for i := range states {
			for _, v := range Variables() {
				text := twin.Value(&states[i], v.Name)
				normal, err := Normal(text)
				require.NoError(t, err)
				require.Equal(t, normal, text, v.Name)
			}
		}
	}
}

func TestValue_FirstState_ReadsAsTLCPrintsIt(t *testing.T) {
	m := readManifest(t)
	c := m.find(t, "channels")
	twin := New(m.settings(t, c))
	s := twin.Init()[0]
	for name, want := range map[string]string{
		"lead": `<<"open">>`, "pask": "<<TRUE>>", "own": "(p1 :> 0 @@ p2 :> 0)", "hold": "(<<1, k1>> :> FALSE)", "rec": "{}",
		"acc": "{<<k1, 0, 0, 0>>}", "nextL": "1", "spent": "FALSE", "ten": "<<n1>>", "up": "(k1 :> TRUE)", "root": "<<1>>",
		"src": "(<<1, k1, p1, c1>> :> 0 @@ <<1, k1, p1, c2>> :> 0 @@ <<1, k1, p2, c1>> :> 0 @@ <<1, k1, p2, c2>> :> 0)",
	} {
		require.Equal(t, want, twin.Value(&s, name), name)
		require.Contains(t, twin.Text(&s), name+" = "+want+"\n")
	}
	require.Empty(t, twin.Value(&s, "nothing"))
	require.Equal(t, len(Variables()), strings.Count(twin.Text(&s), "\n"))
}

// Two states that differ have texts that differ, in every cell that the settings have.
func TestText_EveryCell_Shows(t *testing.T) {
	m := readManifest(t)
	twin := New(m.settings(t, m.find(t, "channels")))
	first := twin.Init()[0]
	for _, v := range Variables() {
		low, high := twin.Settings.Domain(v.In)
		twin.Settings.Each(v, func(at Index) {
			for x := low; x <= high; x++ {
				s := first
				v.Set(&s, at, x)
				require.Equal(t, x, v.Get(&s, at))
				require.Equal(t, s == first, twin.Text(&s) == twin.Text(&first), "%s %v %d", v.Name, at, x)
			}
		})
	}
}

func FuzzNormal(f *testing.F) {
	f.Add("(<<1, k1>> :> FALSE @@ <<1, k2>> :> {\"a\"})")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := Normal(text)
		if err != nil {
			require.ErrorIs(t, err, ErrValue)
			return
		}
		twice, err := Normal(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
