package model

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromConstants_Manifest_IsRead(t *testing.T) {
	m := readManifest(t)
	c := m.find(t, "record")
	w := m.settings(t, c)
	require.Equal(t, []string{"k1", "k2"}, w.Rank)
	require.Equal(t, uint8(1), w.Aux)
	require.Equal(t, uint8(0), w.AuxWriter)
	require.True(t, w.AllHolds)
	require.Equal(t, uint8(1<<ViewSame), w.Views)
	constants := m.constants(c)
	maps.Copy(constants, map[string]string{
		"Big": "{2}", "NT": "2", "Views": `{"same", "other"}`, "AuxWriter": "k2", "Rank": "{k2, k1}", "Causes": `{"derived"}`, "Page": "{p2,p1}", "State": "{p2}",
	})
	w, err := FromConstants(constants)
	require.NoError(t, err)
	require.Equal(t, []string{"k1", "k2"}, w.Rank)
	require.Equal(t, uint8(1), w.AuxWriter)
	require.Equal(t, uint8(1<<2), w.Big)
	require.Equal(t, uint8(1<<ViewSame|1<<ViewOther), w.Views)
	require.Equal(t, uint8(1<<CauseDerived), w.Causes)
	require.Equal(t, uint8(1<<1), w.State)
}

func TestFromConstants_Wrong_IsRefusedAndNamed(t *testing.T) {
	m := readManifest(t)
	base := m.constants(m.find(t, "gone"))
	for name, values := range map[string][]string{
		"NL": {"0", "99", "x", "", "256"}, "NE": {"9"}, "NI": {"-1"}, "Asking": {"true", "1", ""}, "Page": {"{}", "p1", "{p1, p1}", "{a, b, c, d}"},
		"NoTenant": {"n9", ""}, "Big": {"{0}", "{2}", "{x}", "1"}, "Views": {`{"none"}`, "{same}"}, "Aux": {"{p9}"}, "Causes": {`{"none"}`}, "Unheard": {"1"},
	} {
		for _, v := range values {
			constants := maps.Clone(base)
			constants[name] = v
			_, err := FromConstants(constants)
			require.ErrorIs(t, err, ErrSettings, "%s = %s", name, v)
			require.ErrorContains(t, err, name)
		}
		if name != "Unheard" {
			constants := maps.Clone(base)
			delete(constants, name)
			_, err := FromConstants(constants)
			require.ErrorContains(t, err, name+" is missing")
		}
	}
	_, err := FromConstants(nil)
	require.ErrorIs(t, err, ErrSettings)
}
