package spec

import "strings"

// One message of each kind, with every list filled, shared by the vectors, the fuzz seeds and the tests.

func sampleIncarnation(b byte) (i Incarnation) {
	for k := range i {
		i[k] = b + byte(k)
	}
	return i
}

var (
	samplePrefill = sampleIncarnation(0x10)
	sampleDecode  = sampleIncarnation(0x40)
	sampleName    = TransferID{Leader: sampleDecode, Counter: 77}
	sampleSource  = SourceName{Leader: samplePrefill, Counter: 5}
)

func sampleLayouts() []Layout {
	kv := Meaning{ModelRevision: "reference-1", Quantization: "none", DType: "float32", ByteOrder: "little", HeadDim: 8, ElemBytes: 4, KVs: 2, TokensPerPage: 16, Layers: 4, Heads: 2}
	aux := Meaning{ModelRevision: "reference-1", DType: "bytes", ByteOrder: "little", HeadDim: 64, ElemBytes: 1, KVs: 1, Layers: 1, Heads: 1}
	return []Layout{NewDense(KV, kv, 0, 4, 0, 2, 128, 4), NewDense(Aux, aux, 0, 1, 0, 1, 8, 1)}
}

func sampleIdentity(role string, own Incarnation, rank Rank) Identity {
	side := []Incarnation{sampleIncarnation(0x80), sampleIncarnation(0xa0)}
	side[rank] = own
	return Identity{Name: role + "-1", Role: role, Incarnation: own, Rank: rank, Size: 2, Side: side}
}

func sampleParts() []Part {
	return []Part{
		{Component: KV, Index: 0, Rank: 0, LayerHi: 2, HeadHi: 2, TokenHi: 40},
		{Component: KV, Index: 1, Rank: 1, LayerLo: 2, LayerHi: 4, HeadHi: 2, TokenLo: 16, TokenHi: 40},
		{Component: Aux, Index: 0, Rank: 1, LayerHi: 1, HeadHi: 1},
	}
}

func sampleDone() []PartDone {
	return []PartDone{
		{Component: KV, Index: 1, Digests: []uint64{0x1122334455667788, 2, 3}, Source: []SourcePage{{4, 1}, {9, 2}, {7, 1 << 40}}},
		{Component: Aux, Index: 0, Digests: []uint64{9}, Source: []SourcePage{{2, 6}}},
	}
}

// sampleBodies is one body of each kind, in the order of their numbers.
func sampleBodies() []Message {
	caps := []string{CapDrainReceipts, CapMarks, CapTags}
	channels := []Channel{{0, 12}, {3, 9}}
	pages := [ComponentCount][]GrantedPage{KV: {{3, 1}, {5, 8}, {4, 2}}, Aux: {{1, 3}}}
	return []Message{
		Connect{Version, caps, Nonce{1, 2, 3}, 4, 6, sampleIdentity(RoleDecode, sampleDecode, 1), sampleLayouts(), 4096, true, false},
		Accept{Version, caps, Nonce{1, 2, 3}, sampleIdentity(RolePrefill, samplePrefill, 0), sampleLayouts(), 4096, "127.0.0.1:7001", [32]byte{7, 31: 8}},
		Refuse{Nonce{1, 2, 3}, RefuseTwin, "kv.dtype", "bfloat16", "float8_e4m3"},
		Ping{99}, Pong{99},
		Ask{sampleName, sampleSource, "req-1", "tenant-x", "salt", "adapter", []int32{1, 0, 255, -1}, 5e9, Sampling{0.7, 0.95, 42, 5}, []Incarnation{sampleDecode}},
		Asked{sampleName, 40},
		AskFailed{sampleName, CauseTooLong, "prompt of 681281 tokens", 681280},
		Drop{sampleSource, TransferID{}, CauseTooLong},
		Grant{sampleName, 8, Domain{5, 15: 6}, 40, pages, sampleParts(), true},
		Offer{sampleName, 8, 21, sampleDone()[0]},
		Complete{sampleName, 8, 6, 40, RequestDigest{3, 31: 4}, sampleDone(), channels, 21},
		Failing{sampleName, 8, CauseCompute, "kernel"},
		Failed{sampleName, 8, 6, CauseCompute, "kernel", channels},
		Abort{sampleName, 8, CauseDeadline},
		AbortAck{sampleName, 8, 6, channels},
		Gone{sampleName, 8, 6},
		Read{sampleName, 8},
		Fenced{6},
		Refused{KindGrant, 8, RefuseStaleEpoch, "epoch 5"},
	}
}

func sampleEnvelope(m Message) Envelope {
	return Envelope{Header{From: sampleDecode, To: samplePrefill, Epoch: 6, Mark: 7}, m}
}

// largeBodies are the largest messages of the incident's size: 681,280 tokens in 42,580 pages.
func largeBodies() []Message {
	const tokens, n = 681280, 42580
	ask := Ask{Transfer: sampleName, Prompt: make([]int32, tokens), Label: strings.Repeat("l", MaxLabel)}
	grant := Grant{Transfer: sampleName, Lease: 9, Tokens: tokens}
	done := PartDone{Component: KV}
	for i := range uint32(n) {
		grant.Pages[KV] = append(grant.Pages[KV], GrantedPage{PageID(i), Generation(i + 1)})
		done.Digests = append(done.Digests, uint64(i)*0x9e3779b97f4a7c15)
		done.Source = append(done.Source, SourcePage{PageID(i), 1})
	}
	for i := range ask.Prompt {
		ask.Prompt[i] = int32(i % 50000)
	}
	return []Message{ask, grant, Complete{Transfer: sampleName, Lease: 9, Tokens: tokens, Parts: []PartDone{done}}}
}
