package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"kvfence/impl/trace"
	"kvfence/spec"
)

// text is a value with a text form.
type text interface {
	UnmarshalText([]byte) error
	MarshalText() ([]byte, error)
}

// FuzzTrace: a trace file is read to its end or to a line that is refused by number; a line that is read has one form, which reads back equal;
// how the bytes arrive changes nothing. The texts within it are what their values say.
func FuzzTrace(f *testing.F) {
	inc := strings.Repeat("ab", 16)
	f.Add([]byte(`{"at":1,"node":"` + inc + `","machine":"decode","event":{"kind":"Start","start":{"version":1,"name":"d","rank":0,"side":["` + inc + `"],"pages":[3,0,1]}}}` + "\n"))
	f.Add([]byte(`{"at":2,"node":"` + inc + `","machine":"prefill","event":{"kind":"Recv","message":"grant","peer":1,"from":"` + inc + `","transfer":"` + inc + `/7","lease":3},"did":[{"name":"Grant","domain":"0011223344556677","pages":[[[1,2]],[],[]],"parts":[[1,0,0,0,2]]}],"out":[{"kind":"Seal","items":[[0,0,0,1,2,3,4]]}]}` + "\n{\n"))
	f.Add([]byte(inc + "/18446744073709551615"))
	f.Add([]byte("{}\n{\"at\":"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, halves := trace.NewReader(bytes.NewReader(b)), trace.NewReader(iotest.HalfReader(bytes.NewReader(b)))
		for {
			var one, two spec.TraceLine
			err, again := whole.Next(&one), halves.Next(&two)
			require.Equal(t, one, two)
			require.Equal(t, whole.Number(), halves.Number())
			if err != nil {
				require.Equal(t, err.Error(), again.Error())
				require.True(t, err == io.EOF || errors.Is(err, trace.ErrLine), "%v", err)
				require.Equal(t, err == io.EOF && len(b) > 0 && b[len(b)-1] != '\n', whole.Torn() != nil && err == io.EOF)
				break
			}
			require.NoError(t, again)
			line, err := json.Marshal(one)
			require.NoError(t, err)
			var back spec.TraceLine
			require.NoError(t, trace.NewReader(bytes.NewReader(append(line, '\n'))).Next(&back), "%s", line)
			twice, err := json.Marshal(back)
			require.NoError(t, err)
			require.Equal(t, string(line), string(twice))
		}
		for _, v := range []text{new(spec.Incarnation), new(spec.TraceTransfer), new(spec.TraceDomain)} {
			if v.UnmarshalText(b) == nil {
				said, err := v.MarshalText()
				require.NoError(t, err)
				require.NoError(t, v.UnmarshalText(said))
				again, err := v.MarshalText()
				require.NoError(t, err)
				require.Equal(t, said, again)
			}
		}
	})
}
