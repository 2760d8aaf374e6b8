#include "textflag.h"

// Non-temporal copies: ordinary loads, stores that go to memory without reading or filling a cache line (VMOVNTDQ), SFENCE at
// the end so that whatever is stored afterwards (a tag) is not seen before the bytes. dst is aligned to 64, src to nothing;
// n is a positive multiple of the unit that each function names. No stack, no calls: a fault in a load unwinds as one in
// runtime.memmove does.

// func nt512(dst, src *byte, n int)
// Unit 256 bytes, 512-bit vectors. Registers 16 and up need no VZEROUPPER.
TEXT ·nt512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VMOVDQU64 (SI), Z16
	VMOVDQU64 64(SI), Z17
	VMOVDQU64 128(SI), Z18
	VMOVDQU64 192(SI), Z19
	VMOVNTDQ Z16, (DI)
	VMOVNTDQ Z17, 64(DI)
	VMOVNTDQ Z18, 128(DI)
	VMOVNTDQ Z19, 192(DI)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JNZ  loop
	SFENCE
	RET

// func nt512x4(dst, src *byte, n int)
// Unit 16 KiB, as four runs of 4 KiB side by side: the processor reads ahead within 4 KiB only, and so in four places at once.
TEXT ·nt512x4(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
block:
	MOVQ $4096, DX
line:
	VMOVDQU64 (SI), Z16
	VMOVDQU64 4096(SI), Z17
	VMOVDQU64 8192(SI), Z18
	VMOVDQU64 12288(SI), Z19
	VMOVDQU64 64(SI), Z20
	VMOVDQU64 4160(SI), Z21
	VMOVDQU64 8256(SI), Z22
	VMOVDQU64 12352(SI), Z23
	VMOVNTDQ Z16, (DI)
	VMOVNTDQ Z20, 64(DI)
	VMOVNTDQ Z17, 4096(DI)
	VMOVNTDQ Z21, 4160(DI)
	VMOVNTDQ Z18, 8192(DI)
	VMOVNTDQ Z22, 8256(DI)
	VMOVNTDQ Z19, 12288(DI)
	VMOVNTDQ Z23, 12352(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, DX
	JNZ  line
	ADDQ $12288, SI
	ADDQ $12288, DI
	SUBQ $16384, CX
	JNZ  block
	SFENCE
	RET

// func nt256(dst, src *byte, n int)
// Unit 256 bytes, 256-bit vectors, for processors without AVX-512.
TEXT ·nt256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
y:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU 128(SI), Y4
	VMOVDQU 160(SI), Y5
	VMOVDQU 192(SI), Y6
	VMOVDQU 224(SI), Y7
	VMOVNTDQ Y0, (DI)
	VMOVNTDQ Y1, 32(DI)
	VMOVNTDQ Y2, 64(DI)
	VMOVNTDQ Y3, 96(DI)
	VMOVNTDQ Y4, 128(DI)
	VMOVNTDQ Y5, 160(DI)
	VMOVNTDQ Y6, 192(DI)
	VMOVNTDQ Y7, 224(DI)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JNZ  y
	VZEROUPPER
	SFENCE
	RET
