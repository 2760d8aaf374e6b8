//go:build cuda

package driver_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/gpucheck/driver"
	"kvfence/impl/gpucheck/driver/fake"
	"kvfence/kernels"
	"kvfence/kernels/emulation"
	"kvfence/kernels/images"
)

// card is a fresh fake card. The library keeps a broken context for its process, so each test that breaks one has a copy of its own.
func card(t *testing.T) driver.Card {
	t.Helper()
	library, emulated, err := fake.Build(t.TempDir(), emulation.Source{Warp: 32})
	if errors.Is(err, emulation.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Setenv(fake.EmulationVariable, emulated)
	c, err := driver.Open(library)
	require.NoError(t, err)
	return c
}

func TestCard_MemoryAndEvents_DoWhatTheySay(t *testing.T) {
	c := card(t)
	a, err := c.Alloc(64)
	require.NoError(t, err)
	b, err := c.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, c.Write(a, []byte("some bytes")))
	from, err := c.Event()
	require.NoError(t, err)
	to, err := c.Event()
	require.NoError(t, err)
	require.NoError(t, errors.Join(c.Record(from), c.Copy(b, a, 64), c.Record(to)))
	ms, err := c.Elapsed(from, to)
	require.NoError(t, err)
	require.GreaterOrEqual(t, ms, 0.0)
	got := make([]byte, 10)
	require.NoError(t, c.Read(b, got))
	require.Equal(t, "some bytes", string(got))
	require.NoError(t, errors.Join(c.Free(a), c.Free(b)))
	require.ErrorIs(t, c.Free(a), driver.ErrCall, "twice")
}

func TestCard_ImageThatIsNone_IsRefused(t *testing.T) {
	c := card(t)
	_, err := c.Load([]byte("no image\x00"), kernels.NameDigest)
	require.ErrorIs(t, err, driver.ErrCall)
	image, err := images.For(images.Files, kernels.NameDigest, 9, 0)
	require.NoError(t, err)
	_, err = c.Load(image.Bytes, "other")
	require.ErrorIs(t, err, driver.ErrCall)
	_, err = c.Load(image.Bytes, kernels.NameDigest)
	require.NoError(t, err)
}

// What breaks a context breaks every call after it.
func TestCard_AccessOutsideOfMemory_BreaksTheContext(t *testing.T) {
	for name, wrong := range map[string]func(c driver.Card, a kernels.Addr) error{
		"write beyond": func(c driver.Card, a kernels.Addr) error { return c.Write(a+60, make([]byte, 8)) },
		"read before":  func(c driver.Card, a kernels.Addr) error { return c.Read(a-1, make([]byte, 8)) },
		"copy beyond":  func(c driver.Card, a kernels.Addr) error { return c.Copy(a, a+8, 64) },
	} {
		t.Run(name, func(t *testing.T) {
			c := card(t)
			a, err := c.Alloc(64)
			require.NoError(t, err)
			require.ErrorContains(t, wrong(c, a), "ILLEGAL_ADDRESS")
			_, err = c.Alloc(64)
			require.ErrorIs(t, err, driver.ErrCall)
		})
	}
}

func TestCard_CopyInsideACapture_IsRefused(t *testing.T) {
	c := card(t)
	a, err := c.Alloc(64)
	require.NoError(t, err)
	_, err = c.Capture(func() error { return c.Write(a, make([]byte, 8)) })
	require.ErrorIs(t, err, driver.ErrCall)
	require.NoError(t, c.Write(a, make([]byte, 8)), "after it all is as before")
}

func TestCard_ExportedMemory_IsTheImporters(t *testing.T) {
	c := card(t)
	at, size, fd, err := c.Export(100)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "pages")
	defer f.Close()
	require.EqualValues(t, 2<<20, size)
	require.NoError(t, c.Write(at, []byte("shared")))
	other, err := c.Import(fd, size, driver.Read)
	require.NoError(t, err)
	require.NotEqual(t, at, other)
	got := make([]byte, 6)
	require.NoError(t, c.Read(other, got))
	require.Equal(t, "shared", string(got))
	require.ErrorContains(t, c.Write(other, got), "ILLEGAL_ADDRESS", "mapped for reading only")
}
