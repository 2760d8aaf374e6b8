package kernels_test

import (
	"bytes"
	"encoding/binary"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/emulation"
)

func mirrored() map[string]reflect.Type {
	return map[string]reflect.Type{
		"kvf_div": reflect.TypeFor[kernels.Div](), "kvf_cut": reflect.TypeFor[kernels.Cut](), "kvf_view": reflect.TypeFor[kernels.View](),
		"kvf_item": reflect.TypeFor[kernels.Item](), "kvf_result": reflect.TypeFor[kernels.Result](), "kvf_move_args": reflect.TypeFor[kernels.MoveArgs](),
		"kvf_want": reflect.TypeFor[kernels.Want](), "kvf_offender": reflect.TypeFor[kernels.Offender](), "kvf_report": reflect.TypeFor[kernels.Report](),
		"kvf_verify_state": reflect.TypeFor[kernels.VerifyState](), "kvf_verify_block": reflect.TypeFor[kernels.VerifyBlock](),
		"kvf_verify_args": reflect.TypeFor[kernels.VerifyArgs](), "kvf_scrub_args": reflect.TypeFor[kernels.ScrubArgs](), "kvf_put": reflect.TypeFor[kernels.Put](),
		"kvf_put_args": reflect.TypeFor[kernels.PutArgs](),
	}
}

// snake is a Go field's name in C: NItems is n_items.
func snake(s string) string {
	var out strings.Builder
	r := []rune(s)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(c))
	}
	return out.String()
}

// tableOf is what abi.h would say if it were the Go types.
func tableOf(types map[string]reflect.Type) (rows []emulation.Row) {
	for name, t := range types {
		rows = append(rows, emulation.Row{Type: name, Size: uint32(t.Size())})
		for i := range t.NumField() {
			f := t.Field(i)
			rows = append(rows, emulation.Row{Type: name, Field: snake(f.Name), Offset: uint32(f.Offset), Size: uint32(f.Type.Size())})
		}
	}
	return rows
}

func TestABI_GoAndC_HaveTheSameFields(t *testing.T) {
	rows, err := start(t, 32).Table()
	require.NoError(t, err)
	require.ElementsMatch(t, rows, tableOf(mirrored()))
}

func TestABI_OtherOffset_IsRefused(t *testing.T) {
	type item struct {
		Digest uint64
		Zero   uint32
		State  kernels.ItemState
	}
	rows, err := start(t, 32).Table()
	require.NoError(t, err)
	types := mirrored()
	types["kvf_result"] = reflect.TypeFor[item]()
	require.NotSubset(t, rows, tableOf(types))
}

// The encoding that goes over a pipe, or into a copy to the device, has no gaps.
func TestABI_Encoding_IsTheMemory(t *testing.T) {
	for name, typ := range mirrored() {
		require.Equal(t, int(typ.Size()), binary.Size(reflect.New(typ).Elem().Interface()), name)
	}
}

func TestABI_Headers_AreC(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	c := exec.CommandContext(t.Context(), cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-")
	c.Stdin = bytes.NewReader([]byte("#include \"launch.h\"\n#include \"emulation/src/emulate.h\"\n"))
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestLaunch_BadArguments_AreRefused(t *testing.T) {
	m := start(t, 32)
	for name, c := range map[string]struct {
		kernel string
		args   any
	}{
		"no slices": {kernels.NameDigest, kernels.MoveArgs{NItems: 1, SliceChunks: 1}}, "no chunks": {kernels.NameGather, kernels.MoveArgs{NItems: 1, Slices: 1}},
		"skewed items":  {kernels.NameScatter, kernels.MoveArgs{NItems: 1, Slices: 1, SliceChunks: 1, Items: 4}},
		"skewed tags":   {kernels.NameConvert, kernels.MoveArgs{NItems: 1, Slices: 1, SliceChunks: 1, Tags: 8}},
		"too many":      {kernels.NameDigest, kernels.MoveArgs{NItems: 1 << 20, Slices: 1 << 20, SliceChunks: 1}},
		"skewed wants":  {kernels.NameTagVerify, kernels.VerifyArgs{Wants: 8}},
		"no spans":      {kernels.NameScrub, kernels.ScrubArgs{N: 1, Slices: 1}},
		"skewed slots":  {kernels.NameTagPut, kernels.PutArgs{N: 1, Tags: 32 + 8}},
		"other struct":  {kernels.NameTagPut, kernels.MoveArgs{}},
		"other kernel":  {"kvf_other", kernels.PutArgs{}},
		"another grid":  {kernels.NameTagPut, kernels.PutArgs{N: 1000}},
		"too many puts": {kernels.NameTagPut, kernels.PutArgs{N: 1<<32 - 1, Tags: 1}},
	} {
		_, err := m.Launch(c.kernel, 1, c.args, 0)
		require.ErrorIs(t, err, emulation.ErrKernel, name)
	}
}
