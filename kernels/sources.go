package kernels

import "embed"

// Sources are the kernels, their headers and the emulation, as in this folder.
//
//go:embed *.h *.cu emulation/src
var Sources embed.FS
