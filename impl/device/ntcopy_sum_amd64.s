#include "textflag.h"

// LANE moves 64 bytes of one chunk and takes them into that chunk's XXH3 accumulator: what is stored and what is hashed is the
// same register, whatever the source's owner does meanwhile. Z4 holds the stripe's key.
#define LANE(at, d, a, b, acc) \
	VMOVDQU64 (at)(SI), d \
	VMOVNTDQ d, (at)(DI) \
	VPXORQ Z4, d, a \
	VPSHUFD $0x31, a, b \
	VPMULUDQ a, b, a \
	VPSHUFD $0x4e, d, d \
	VPADDQ a, d, d \
	VPADDQ d, acc, acc

// STRIPE does so for the 64 bytes at off of four chunks that lie 4096 apart; key is the stripe's offset in the secret.
#define STRIPE(off, key) \
	VMOVDQU64 key(DX), Z4 \
	LANE(off, Z5, Z6, Z7, Z0) \
	LANE(off+4096, Z8, Z9, Z10, Z1) \
	LANE(off+8192, Z11, Z12, Z13, Z2) \
	LANE(off+12288, Z14, Z15, Z16, Z3)

// SCRAMBLE ends a block of 1024 bytes: acc = (acc ^ acc>>47 ^ secret[128:]) * prime.
#define SCRAMBLE(acc) \
	VPSRLQ $47, acc, Z5 \
	VPXORQ Z5, acc, acc \
	VPXORQ Z17, acc, acc \
	VPSRLQ $32, acc, Z5 \
	VPMULUDQ Z18, acc, acc \
	VPMULUDQ Z18, Z5, Z5 \
	VPSLLQ $32, Z5, Z5 \
	VPADDQ Z5, acc, acc

// func ntsum512(accs *[8]uint64, dst, src *byte, units int, secret, start *byte)
// Non-temporal copy of units * 16 KiB, dst aligned to 64; each unit is four digest chunks of 4096 bytes, hashed side by side.
// accs gets the four XXH3 accumulators of each unit (4 * 64 bytes), before the final merge; start is the 64 bytes they begin with.
TEXT ·ntsum512(SB), NOSPLIT, $0-48
	MOVQ accs+0(FP), AX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI
	MOVQ units+24(FP), CX
	MOVQ secret+32(FP), DX
	MOVQ start+40(FP), R8
	VMOVDQU64 128(DX), Z17
	MOVL $0x9e3779b1, BX
	VPBROADCASTQ BX, Z18

unit:
	VMOVDQU64 (R8), Z0
	VMOVDQA64 Z0, Z1
	VMOVDQA64 Z0, Z2
	VMOVDQA64 Z0, Z3
	MOVQ $4, R9

block:
	STRIPE(0, 0)
	STRIPE(64, 8)
	STRIPE(128, 16)
	STRIPE(192, 24)
	STRIPE(256, 32)
	STRIPE(320, 40)
	STRIPE(384, 48)
	STRIPE(448, 56)
	STRIPE(512, 64)
	STRIPE(576, 72)
	STRIPE(640, 80)
	STRIPE(704, 88)
	STRIPE(768, 96)
	STRIPE(832, 104)
	STRIPE(896, 112)
	DECQ R9
	JZ   last
	STRIPE(960, 120)
	SCRAMBLE(Z0)
	SCRAMBLE(Z1)
	SCRAMBLE(Z2)
	SCRAMBLE(Z3)
	ADDQ $1024, SI
	ADDQ $1024, DI
	JMP  block

last:
	// The last stripe of a message has a key of its own, and its block is not scrambled.
	STRIPE(960, 121)
	VMOVDQU64 Z0, (AX)
	VMOVDQU64 Z1, 64(AX)
	VMOVDQU64 Z2, 128(AX)
	VMOVDQU64 Z3, 192(AX)
	ADDQ $256, AX
	ADDQ $13312, SI
	ADDQ $13312, DI
	DECQ CX
	JNZ  unit
	VZEROUPPER
	SFENCE
	RET
