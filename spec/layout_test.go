package spec

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The handshake names the differing field and both values, whichever field it is: no field of Meaning is left out.
func TestCaseB29_EachMeaningField_IsComparedByName(t *testing.T) {
	m := sampleLayouts()[0].Equal
	require.NoError(t, m.Compare(KV, m))
	typ := reflect.TypeFor[Meaning]()
	for i := range typ.NumField() {
		o := m
		v := reflect.ValueOf(&o).Elem().Field(i)
		if v.Kind() == reflect.String {
			v.SetString("other")
		} else {
			v.SetUint(v.Uint() + 1)
		}
		for _, err := range []error{m.Compare(KV, o), o.Compare(KV, m)} {
			var d FieldDiff
			require.ErrorAs(t, err, &d)
			require.ErrorIs(t, err, ErrLayout)
			require.False(t, errors.Is(err, ErrPlan))
			require.Equal(t, "kv."+snake(typ.Field(i).Name), d.Field)
			require.NotEqual(t, d.Ours, d.Theirs)
			require.Contains(t, err.Error(), d.Ours)
			require.Contains(t, err.Error(), d.Theirs)
		}
	}
}

// snake is the wire's form of a Go field name.
func snake(name string) string {
	special := map[string]string{"DType": "dtype", "KVs": "kvs", "KVStride": "kv_stride"}
	if s, ok := special[name]; ok {
		return s
	}
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

func TestCaseB29_HalfSizedElements_AreRefusedByName(t *testing.T) {
	bf16 := Meaning{DType: "bfloat16", ElemBytes: 2, TokensPerPage: 8}
	fp8 := Meaning{DType: "float8_e4m3", ElemBytes: 1, TokensPerPage: 8}
	require.EqualError(t, bf16.Compare(KV, fp8), "layouts differ in kv.dtype: ours bfloat16, theirs float8_e4m3")
	require.EqualError(t, fp8.Compare(KV, bf16), "layouts differ in kv.dtype: ours float8_e4m3, theirs bfloat16")
}

// What Validate accepts has no two cells at one byte and none beyond the page, in whatever order the dimensions are nested.
func TestLayoutValidate_Accepted_CellsAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMeaning(t)
		l := drawLayout(t, m, 0, m.Layers, 0, m.Heads)
		for _, s := range []*uint32{&l.Shape.TokenStride, &l.Shape.HeadStride, &l.Shape.KVStride, &l.Shape.LayerStride, &l.Shape.PageBytes} {
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				*s = rapid.Uint32Range(0, 2*l.Shape.PageBytes).Draw(t, "to")
			}
		}
		if err := l.Validate(); err != nil {
			require.ErrorIs(t, err, ErrLayout)
			return
		}
		used := make([]bool, l.Shape.PageBytes)
		eachCell(l, 0, m.TokensPerPage, func(_, at uint32, b []byte) {
			for i := range b {
				require.False(t, used[at+uint32(i)], "byte %d belongs to two cells", at+uint32(i))
				used[at+uint32(i)] = true
			}
		})
	})
}

// Holes and every nesting are accepted: what engines lay out as heads within tokens as well as tokens within heads.
func TestLayoutValidate_AnyNesting_IsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMeaning(t)
		require.NoError(t, drawLayout(t, m, 0, m.Layers, 0, m.Heads).Validate())
	})
}

func TestLayoutValidate_OutOfBounds_NamesField(t *testing.T) {
	for field, edit := range map[string]func(l *Layout){
		"component":       func(l *Layout) { l.Component = ComponentCount },
		"layers":          func(l *Layout) { l.Equal.Layers = MaxLayers + 1 },
		"heads":           func(l *Layout) { l.Equal.Heads = 0 },
		"kvs":             func(l *Layout) { l.Equal.KVs = 3 },
		"byte_order":      func(l *Layout) { l.Equal.ByteOrder = "big" },
		"head_dim":        func(l *Layout) { l.Equal.HeadDim, l.Equal.ElemBytes = 1<<16, 1<<16 },
		"tokens_per_page": func(l *Layout) { l.Equal.TokensPerPage = 0 },
		"layer_hi":        func(l *Layout) { l.Shape.LayerHi = l.Equal.Layers + 1 },
		"head_hi":         func(l *Layout) { l.Shape.HeadLo = l.Shape.HeadHi },
		"page_bytes":      func(l *Layout) { l.Shape.PageBytes = MaxPageBytes + 1 },
		"tag_slots":       func(l *Layout) { l.Shape.TagSlots = MaxTagSlots + 1 },
	} {
		l := sampleLayouts()[0]
		require.NoError(t, l.Validate())
		edit(&l)
		require.ErrorIs(t, l.Validate(), ErrLayout)
		require.ErrorContains(t, l.Validate(), "."+field+" ", field)
	}
}
