package compile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const nvidiaSaid = `ptxas info    : 256 bytes gmem
ptxas info    : Compiling entry function 'kvf_x' for 'sm_90'
ptxas info    : Function properties for kvf_x
    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 120 registers, used 0 barriers, 32768 bytes smem
`

const amdSaid = `x.cu:10:1: remark: Function Name: kvf_x [-Rpass-analysis=kernel-resource-usage]
x.cu:10:1: remark:     SGPRs: 86 [-Rpass-analysis=kernel-resource-usage]
x.cu:10:1: remark:     VGPRs: 126 [-Rpass-analysis=kernel-resource-usage]
x.cu:10:1: remark:     ScratchSize [bytes/lane]: 4 [-Rpass-analysis=kernel-resource-usage]
x.cu:10:1: remark:     SGPRs Spill: 2 [-Rpass-analysis=kernel-resource-usage]
x.cu:10:1: remark:     VGPRs Spill: 3 [-Rpass-analysis=kernel-resource-usage]
x.cu:10:1: remark:     LDS Size [bytes/block]: 16384 [-Rpass-analysis=kernel-resource-usage]
`

func TestFigure_WhatCompilersSay_IsRead(t *testing.T) {
	f, err := Target{"sm_90", Cubin}.figure("kvf_x", nvidiaSaid)
	require.NoError(t, err)
	require.Equal(t, Figure{"kvf_x", "sm_90", 120, 40, 8, 32768}, f)
	f, err = Target{"gfx90a", Hsaco}.figure("kvf_x", amdSaid)
	require.NoError(t, err)
	require.Equal(t, Figure{"kvf_x", "gfx90a", 126, 5, 4, 16384}, f)
}

func TestFigure_WordsThatAreMissingOrTwice_AreRefused(t *testing.T) {
	for name, said := range map[string]string{"nothing": "", "twice": nvidiaSaid + nvidiaSaid, "half": nvidiaSaid[:150]} {
		_, err := Target{"sm_90", Cubin}.figure("kvf_x", said)
		require.Error(t, err, name)
	}
	_, err := Target{"sm_90", Cubin}.figure("kvf_y", nvidiaSaid)
	require.ErrorContains(t, err, "speaks of kvf_x")
	_, err = Target{"gfx90a", Hsaco}.figure("kvf_x", amdSaid[:300])
	require.Error(t, err)
}
