//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// The link ends when all bytes are in place and nothing else is done yet: the epoch is looked at behind the copy, so the page gets no tag.
func TestReader_LinkEndsBehindTheBytes_DestinationTagStaysVoid(t *testing.T) {
	for name, end := range map[string]func(g *rig, r *Reader){
		"by the source":             func(g *rig, _ *Reader) { g.x.Shut() },
		"by the reader's own fence": func(_ *rig, r *Reader) { r.fenced.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			sink := newReaderSink()
			cfg := g.config(sink)
			var r *Reader
			cfg.hook = func(p point) {
				if p == afterBytes {
					end(g, r)
				}
			}
			r = g.dial(cfg)
			c := g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})
			r.Copy(transport.CopyJob{ID: 1, Lease: 111, Digests: true, Copies: []transport.Copy{c}})
			res := <-sink.copied
			require.Error(t, res.Err)
			require.Equal(t, spec.TagVoid, device.CheckTag(cfg.Memory[spec.KV].Slot(4, 0), c.DstTag))
		})
	}
}
