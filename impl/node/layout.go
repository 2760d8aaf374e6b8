package node

import (
	"errors"
	"fmt"

	"kvfence/impl/config"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// ErrSplit says that a model cannot be divided over that many ranks.
var ErrSplit = errors.New("the model cannot be divided")

// newModel makes the reference model that cfg names.
func newModel(cfg config.Config) (workload.Model, error) {
	m := cfg.Model
	return workload.New(workload.Config{
		Kind: workload.Kind(m.Kind), Seed: m.Seed, Layers: m.Layers, Heads: m.Heads, HeadDim: m.HeadDim, MaxWindow: int(cfg.Sizes.Window),
	})
}

// revision is what peers compare: everything that decides what KV bytes mean.
func revision(cfg config.Config, m workload.Model) string {
	if cfg.Model.Revision == "" {
		return m.Revision()
	}
	return m.Revision() + " " + cfg.Model.Revision
}

// layouts are the pools of every rank of a side: KV divided by heads or layers, and one auxiliary record a lease at each rank.
func layouts(cfg config.Config, m workload.Model, ranks int, split string, poolTokens uint32) ([][]spec.Layout, error) {
	g, s := m.Geometry(), cfg.Sizes
	kv := spec.Meaning{
		ModelRevision: revision(cfg, m), Quantization: "none", DType: fmt.Sprintf("ref%d", 8*g.ElemBytes), ByteOrder: "little",
		HeadDim: uint32(g.HeadDim), ElemBytes: uint32(g.ElemBytes), KVs: 2, TokensPerPage: s.Page, Layers: uint32(g.Layers), Heads: uint32(g.KVHeads),
	}
	aux := kv
	aux.DType, aux.HeadDim, aux.ElemBytes, aux.KVs, aux.TokensPerPage, aux.Layers, aux.Heads = "record", AuxBytes, 1, 1, 0, 1, 1
	whole := g.KVHeads
	if split == "layers" {
		whole = g.Layers
	}
	if whole%ranks != 0 {
		return nil, fmt.Errorf("%w: %d %s over %d ranks", ErrSplit, whole, split, ranks)
	}
	part := uint32(whole / ranks)
	var out [][]spec.Layout
	for r := range uint32(ranks) {
		layerLo, layerHi, headLo, headHi := uint32(0), kv.Layers, r*part, (r+1)*part
		if split == "layers" {
			layerLo, layerHi, headLo, headHi = r*part, (r+1)*part, 0, kv.Heads
		}
		ls := []spec.Layout{
			spec.NewDense(spec.KV, kv, layerLo, layerHi, headLo, headHi, poolTokens/s.Page, s.TagSlots),
			spec.NewDense(spec.Aux, aux, 0, 1, 0, 1, s.AuxSlots, s.TagSlots),
		}
		for i := range ls {
			ls[i].Shape.Shared = cfg.Transport.Kind == "shm"
			if err := ls[i].Validate(); err != nil {
				return nil, err
			}
		}
		out = append(out, ls)
	}
	return out, nil
}
