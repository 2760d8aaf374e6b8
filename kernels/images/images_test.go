package images_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/images"
)

// tree has PTX for all kernels and cubins of the digest, made from sources with this sum.
func tree(sum string) fstest.MapFS {
	m := fstest.MapFS{"cubin/sources": {Data: []byte(sum + "\n")}}
	for _, k := range kernels.Names() {
		m["ptx/"+k[len("kvf_"):]+".ptx"] = &fstest.MapFile{Data: []byte(k)}
	}
	for _, a := range []string{"80", "90", "100"} {
		m["cubin/digest.sm_"+a+".cubin"] = &fstest.MapFile{Data: []byte(a)}
	}
	return m
}

func TestFor_EachCard_GetsWhatItCanRun(t *testing.T) {
	sum, err := images.SourceSum()
	require.NoError(t, err)
	for _, c := range []struct {
		major, minor int
		name         string
	}{
		{8, 0, "cubin/digest.sm_80.cubin"}, {8, 9, "cubin/digest.sm_80.cubin"}, {9, 0, "cubin/digest.sm_90.cubin"},
		{10, 3, "cubin/digest.sm_100.cubin"}, {12, 0, "ptx/digest.ptx"},
	} {
		got, err := images.For(tree(sum), kernels.NameDigest, c.major, c.minor)
		require.NoError(t, err)
		require.Equal(t, c.name, got.Name)
	}
	got, err := images.For(tree(sum), kernels.NameScrub, 9, 0)
	require.NoError(t, err)
	require.Equal(t, "kvf_scrub\x00", string(got.Bytes))
}

func TestFor_CubinsOfOtherSources_AreLeftAside(t *testing.T) {
	got, err := images.For(tree("another"), kernels.NameDigest, 9, 0)
	require.NoError(t, err)
	require.Equal(t, "ptx/digest.ptx", got.Name)
}

func TestFor_OldCardOrUnknownKernel_IsRefused(t *testing.T) {
	sum, err := images.SourceSum()
	require.NoError(t, err)
	for kernel, major := range map[string]int{kernels.NameDigest: 7, "kvf_none": 9, "../digest": 9} {
		_, err := images.For(tree(sum), kernel, major, 0)
		require.ErrorIs(t, err, images.ErrNoImage)
	}
	_, err = images.For(fstest.MapFS{}, kernels.NameDigest, 9, 0)
	require.ErrorIs(t, err, images.ErrNoImage)
}

func TestFiles_PTXOfEachKernel_IsCarried(t *testing.T) {
	for _, k := range kernels.Names() {
		got, err := images.For(images.Files, k, 99, 0)
		require.NoError(t, err)
		require.True(t, bytes.Contains(got.Bytes, []byte(".visible .entry "+k+"(")), k)
		require.True(t, bytes.Contains(got.Bytes, []byte(".target sm_80")), k)
	}
}
