// Package images is what a build carries of the compiled kernels. PTX is kept in the repository, so that a build needs no CUDA: each card from
// sm_80 on can run it, after its driver has translated it. Cubins are only there if `make kernels` made them before the build (they are not
// tracked), and are left aside when they were made from other sources than the build's. The package loads nothing. Called by
// impl/gpucheck. Read next: ../compile/compile.go.
package images

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kvfence/kernels"
)

// Files are ptx/NAME.ptx and cubin/NAME.ARCH.cubin with cubin/sources.
//
//go:embed ptx cubin
var Files embed.FS

// ErrNoImage is wrapped where no image of a kernel can run on a card.
var ErrNoImage = errors.New("no image of the kernel for this card")

// Image is one module.
type Image struct {
	Name  string // as in Files
	Bytes []byte // PTX ends with a zero byte, as drivers want it
}

// oldest is the card that the PTX is for: sm_80.
const oldest = 8

// For is the image of a kernel for a card of compute capability major.minor: a cubin of the same major and the nearest minor, or PTX.
func For(files fs.FS, kernel string, major, minor int) (Image, error) {
	base := strings.TrimPrefix(kernel, "kvf_")
	if !slices.Contains(kernels.Names(), kernel) || major < oldest {
		return Image{}, fmt.Errorf("%w: %s for sm_%d%d", ErrNoImage, kernel, major, minor)
	}
	if current(files) {
		for m := minor; m >= 0; m-- {
			name := fmt.Sprintf("cubin/%s.sm_%d%d.cubin", base, major, m)
			if b, err := fs.ReadFile(files, name); err == nil {
				return Image{name, b}, nil
			}
		}
	}
	name := "ptx/" + base + ".ptx"
	b, err := fs.ReadFile(files, name)
	if err != nil {
		return Image{}, fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	return Image{name, append(b, 0)}, nil
}

// current reports whether the cubins are of this build's sources.
func current(files fs.FS) bool {
	b, err := fs.ReadFile(files, "cubin/sources")
	if err != nil {
		return false
	}
	sum, err := SourceSum()
	return err == nil && strings.TrimSpace(string(b)) == sum
}

// SourceSum is the sum of the kernels' sources and headers.
func SourceSum() (string, error) {
	h := sha256.New()
	entries, err := fs.ReadDir(kernels.Sources, ".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		b, err := fs.ReadFile(kernels.Sources, e.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, e.Name(), len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
