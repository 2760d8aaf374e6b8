package plants

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/sim"
)

const root = "../.."

// Every plant stands where it says, in the sources as they are now, and says by what it is to be caught.
func TestAll_SourcesAsTheyAre_EveryPlaceIsThere(t *testing.T) {
	all := All()
	require.NoError(t, Check(all))
	_, _, err := WriteOverlay(root, t.TempDir(), all)
	require.NoError(t, err)
	plants := 0
	for i := range all {
		if !all[i].Aid() {
			plants++
		}
	}
	require.Greater(t, plants, 30)
}

func TestCheck_PlantsThatSayTooLittle_AreRefused(t *testing.T) {
	edits := []Edit{{"core.DecodeRank.do", First, "r.out = append(r.out, a)", "_ = a"}}
	good := Plant{Name: "good", What: "nothing", Guard: "a guard", Edits: edits, Want: []string{"I2"}}
	require.NoError(t, Check([]Plant{good}))
	for name, spoil := range map[string]func(p *Plant){
		"no name":           func(p *Plant) { p.Name = "" },
		"no change":         func(p *Plant) { p.Edits = nil },
		"no property":       func(p *Plant) { p.Want = nil },
		"unknown mix":       func(p *Plant) { p.Mix = "sunshine" },
		"unknown companion": func(p *Plant) { p.With, p.Why = []string{"nobody"}, "because" },
		"tests without why": func(p *Plant) { p.Tests = true },
	} {
		p := good
		spoil(&p)
		require.ErrorIs(t, Check([]Plant{p}), ErrPlant, name)
	}
	require.ErrorContains(t, Check([]Plant{good, good}), "two are named")
}

// tree is a small repository with one package of the core.
func tree(t *testing.T, text string) string {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "impl/core"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "impl/core/a.go"), []byte(text), 0o644))
	return dir
}

const small = `package core

type m struct{ n int }

func (x *m) step(a, b bool) bool {
	if a || b {
		x.n++
	}
	if a {
		return false
	}
	return x.n > 2
}
`

func TestWriteOverlay_TextThatIsNotThereOnce_IsRefused(t *testing.T) {
	for name, e := range map[string]Edit{
		"not there":          {"core.m.step", Skip, "x.n--", ""},
		"twice":              {"core.m.step", Never, "a", ""},
		"no such function":   {"core.m.stop", Skip, "x.n++", ""},
		"nothing":            {"core.m.step", Skip, " ", ""},
		"nothing in place":   {"core.m.step", Instead, "x.n++", ""},
		"text for a skip":    {"core.m.step", Skip, "x.n++", "x.n--"},
		"no such way to do":  {"core.m.step", "is wished away", "x.n++", "x.n--"},
		"text of a comment?": {"core.m.step", Skip, "// x.n++", ""},
	} {
		_, _, err := WriteOverlay(tree(t, small), t.TempDir(), []Plant{{Name: "p", Edits: []Edit{e}}})
		require.ErrorIs(t, err, ErrPlant, name)
	}
	_, _, err := WriteOverlay(tree(t, small), t.TempDir(), []Plant{
		{Name: "p", Edits: []Edit{{"core.m.step", Skip, "x.n++ } if a {", ""}}},
		{Name: "q", Edits: []Edit{{"core.m.step", Skip, "if a { return false }", ""}}},
	})
	require.ErrorContains(t, err, "cross each other")
}

func TestWriteOverlay_PlacesWithinEachOther_HaveASwitchEach(t *testing.T) {
	dir := t.TempDir()
	_, _, err := WriteOverlay(tree(t, small), dir, []Plant{
		{Name: "p", Edits: []Edit{{"core.m.step", Never, "a || b", ""}}},
		{Name: "q", Edits: []Edit{{"core.m.step", Instead, "x.n++", "x.n = 7"}, {"core.m.step", Value, "x.n > 2", "true"}}},
		{Name: "r", Edits: []Edit{{"core.m.step", First, "if a || b {\n\t\tx.n++\n\t}", "a = b"}}},
	})
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "impl_core_a.go"))
	require.NoError(t, err)
	for _, want := range []string{
		"//go:build plants\n\n//line a.go:1\n", "if planted(2) { a = b }; if (!planted(0) && (a || b)) {",
		"if planted(1) { x.n = 7 } else { x.n++ }", "return plantedValue(planted(1), true, x.n > 2)",
	} {
		require.Contains(t, string(b), want)
	}
}

func TestRecord_ThatIsNotOfThesePlants_IsRefused(t *testing.T) {
	all := []Plant{{Name: "p", What: "x", Guard: "g", Want: []string{"I2"}, Edits: []Edit{{"core.m.step", Skip, "x.n++", ""}}}, {Name: "aid", What: "y"}}
	entry := Entry{Name: "p", Text: all[0].hash(all), Run: &Seen{Seed: 1, Property: "I2"}}
	require.NoError(t, Record{"p": entry}.Fits(all))
	require.NoError(t, Record{"p": entry}.Caught(all))
	require.ErrorContains(t, Record{"p": entry, "q": entry}.Fits(all), `no plant "q"`)
	require.ErrorContains(t, Record{"p": entry, "aid": entry}.Fits(all), `no plant "aid"`)
	require.ErrorContains(t, Record{}.Fits(all), "not recorded")
	changed := []Plant{all[0], all[1]}
	changed[0].Edits = []Edit{{"core.m.step", Never, "x.n > 2", ""}}
	require.ErrorContains(t, Record{"p": entry}.Fits(changed), "not recorded as it is now")

	none, accident, slow := entry, entry, entry
	none.Run = nil
	accident.Run = &Seen{Seed: 1, Property: "panic"}
	slow.Run = &Seen{Seed: 1, Property: "I2", Seconds: Limit + 1}
	require.ErrorContains(t, Record{"p": none}.Caught(all), "no run is refused")
	require.ErrorContains(t, Record{"p": accident}.Caught(all), "by accident")
	require.ErrorContains(t, Record{"p": slow}.Caught(all), "was caught after")
	tested := []Plant{all[0]}
	tested[0].Tests = true
	require.ErrorContains(t, Record{"p": entry}.Caught(tested), "no test fails")
}

func TestReadRecord_BrokenFile_IsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	read := func(text string) error {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := ReadRecord(path)
		return err
	}
	require.NoError(t, read(`[{"name":"p"}]`))
	require.ErrorIs(t, read(`[{"name":"p","colour":"red"}]`), ErrRecord)
	require.ErrorIs(t, read(`[{"name":"p"},{"name":"p"}]`), ErrRecord)
	require.ErrorIs(t, read(`[`), ErrRecord)
}

// The page in docs/ is the record's, and the record is of these plants.
func TestPage_InDocs_IsTheRecords(t *testing.T) {
	r, err := ReadRecord("record.json")
	require.NoError(t, err)
	require.NoError(t, r.Fits(All()))
	require.NoError(t, r.Caught(All()))
	page, err := os.ReadFile(root + "/docs/plants.md")
	require.NoError(t, err)
	require.Equal(t, string(page), Page(All(), r))
	require.Contains(t, string(page), Closing(All(), r))
}

// Storms by themselves are no bugs: every request is told the truth and every page comes back.
func TestStorm_NoPlant_IsWeathered(t *testing.T) {
	for _, m := range Mixes() {
		if m.Storm == nil {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			c, err := Job{Mix: m.Name, From: 1, Count: 8, Follow: true}.Run()
			require.NoError(t, err)
			require.Zero(t, c.Seed, "%s", c.Text)
			require.Equal(t, 8, c.Seeds)
		})
	}
}

func TestJob_SameSeed_SameSteps(t *testing.T) {
	j := Job{Mix: "fences", From: 3, Count: 4}
	a, err := j.Run()
	require.NoError(t, err)
	b, err := j.Run()
	require.NoError(t, err)
	require.Equal(t, a.Steps, b.Steps)
}

// What a request is told is compared with what has happened: where a fabric damages pages and everything else is calm, it shows.
func TestStorm_FabricDamages_WhatIsToldIsRefused(t *testing.T) {
	calm := &storm{held: 40, most: 50e6}
	for seed := uint64(1); seed <= 40; seed++ {
		_, err := one(seed, calm, func(c *sim.Config) {
			push(c)
			c.Fabric.NoticesFirst, c.Lax = true, true // the oracle does not judge writes under way
		})
		if errors.Is(err, ErrFidelity) {
			require.Equal(t, "fidelity", Property(err))
			return
		}
	}
	require.Fail(t, "forty storms saw nothing")
}
