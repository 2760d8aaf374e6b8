package verbs

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// someOpening is a good one of two rails and one pool.
func someOpening() opening {
	m := spec.Meaning{ModelRevision: "m", ByteOrder: "little", HeadDim: 4, ElemBytes: 1, KVs: 2, TokensPerPage: 4, Layers: 2, Heads: 2}
	o := opening{Version: openingVersion, Windows: true, Pools: []poolEnd{{Layout: spec.NewDense(spec.KV, m, 0, 2, 0, 2, 8, 2), Pages: 1 << 40, Tags: 1 << 41}}}
	for i := range 2 {
		o.Rails = append(o.Rails, railEnd{Index: i, Device: "rxe", QueuePair: uint32(17 + i), PSN: 5, GID: "00000000000000000000ffff0a630001", GIDType: gidRoCE24, MTU: 4096})
	}
	return o
}

// FuzzOpening: whatever a peer says of itself, it is refused or within the bounds that everything behind relies on, and comparing it with ours ends.
func FuzzOpening(f *testing.F) {
	good, err := json.Marshal(someOpening())
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"version":1,"refused":"no"}`))
	f.Add(bytes.Replace(good, []byte(`"pages":1099511627776`), []byte(`"pages":18446744073709551615`), 1))
	f.Add(bytes.Replace(good, []byte(`"index":1`), []byte(`"index":9`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseOpening(b)
		if err != nil {
			require.ErrorIs(t, err, ErrMismatch)
			return
		}
		require.LessOrEqual(t, len(o.Rails), MaxRails)
		for _, r := range o.Rails {
			require.Less(t, r.Index, MaxRails)
			_, err := r.gid()
			require.NoError(t, err)
		}
		for _, p := range o.Pools {
			require.NoError(t, p.check())
		}
		rails, err := agree(someOpening(), o)
		if err == nil {
			require.NotEmpty(t, rails)
		}
	})
}

// FuzzKeys: a frame of keys is refused, or is what append writes; a table of such frames answers for any page without a fault.
func FuzzKeys(f *testing.F) {
	good := leaseKeys{Lease: 7, Last: true, Keys: []windowKey{{spec.KV, false, 0, 3, 2, 9}, {spec.KV, true, 0, 3, 2, 10}}}
	f.Add(good.append(nil), uint32(4))
	f.Add(leaseKeys{Lease: 1}.append(nil), uint32(0))
	f.Add([]byte{1}, uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, page uint32) {
		k, err := parseKeys(b)
		if err != nil {
			require.ErrorIs(t, err, ErrFrame)
			return
		}
		require.Equal(t, b, k.append(nil))
		var table keyTable
		if table.add(k) != nil {
			return
		}
		for _, tags := range []bool{false, true} {
			key, known := table.key(0, spec.KV, tags, spec.PageID(page))
			inside := false
			for _, w := range k.Keys {
				inside = inside || k.Last && w.Rail == 0 && w.Component == spec.KV && w.Tags == tags && page >= w.First && page-w.First < w.Count && w.Key == key
			}
			if k.Last {
				require.Equal(t, inside, known)
			}
		}
	})
}

// FuzzFrame: what getFrame takes is what putFrame writes, and no length makes it read or keep more than a frame may have.
func FuzzFrame(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, putFrame(&b, frameKeys, leaseKeys{Lease: 1, Last: true}.append(nil)))
	require.NoError(f, putFrame(&b, frameShut, nil))
	f.Add(b.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			at := len(b) - r.Len()
			kind, body, err := getFrame(r)
			if err != nil {
				return
			}
			var again bytes.Buffer
			require.NoError(t, putFrame(&again, kind, body))
			require.Equal(t, b[at:len(b)-r.Len()], again.Bytes())
			require.LessOrEqual(t, len(body), maxFrame)
		}
	})
}
