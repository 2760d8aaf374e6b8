package node

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/node/api"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// damage runs f between two decode steps, while nothing else touches the pool: the one worker for steps waits for the loop, which
// runs f.
func (p *pair) damage(f func(mem []byte, tags []byte)) {
	done := make(chan struct{})
	d := p.decode.decode
	d.step.put(func() {
		d.box.put(func() {
			pool := d.ranks[0].mem[spec.KV]
			f(pool.Bytes, pool.Tags)
			close(done)
		})
		<-done
	})
	<-done
}

func TestStep_TagOfAPageChanges_TokenDoesNotLeaveAndPagesComeBack(t *testing.T) {
	for name, f := range map[string]func(mem, tags []byte){
		"void":    func(_, tags []byte) { clear(tags) },
		"torn":    func(_, tags []byte) { flip(tags, 3) },
		"foreign": func(_, tags []byte) { copy(tags[:len(tags)/2], tags[len(tags)/2:]); flip(tags, 56) },
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, func(c *config.Config) { c.Decode.Workers, c.Sizes.Window = 1, 1000 })
			req, want := p.longAnswer(80)
			s, err := p.client.Open(t.Context(), req)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			_, err = s.Next()
			require.NoError(t, err)
			p.damage(f)
			n := 0
			for err == nil {
				var e api.Event
				if e, err = s.Next(); err == nil && e.Kind == api.KindToken {
					require.Equal(t, want.Tokens[n], e.Token.ID, "what went out before stands")
					n++
				}
			}
			if errors.Is(err, io.EOF) {
				t.Skip("the answer was over before the damage")
			}
			require.Equal(t, api.KVMismatch, api.CodeOf(err), "%v", err)
			require.Less(t, n, len(want.Tokens))
			require.NotZero(t, p.decode.Status(t.Context()).Decode.Ranks[0].Alarms)
			_, body := get(t, "http://"+p.decode.Addresses().Operator+"/metrics")
			require.Contains(t, body, `kvfence_alarms_total{role="decode"} 1`)
			p.ready()
			p.idle() // quarantine ends by the fences of the links that were granted the pages
			p.check(testRequest(30, 4, 5))
		})
	}
}

// longAnswer finds a request whose answer has at least n tokens.
func (p *pair) longAnswer(n int) (*api.Request, workload.Result) {
	for salt := range int32(500) {
		req := testRequest(20, salt, 900)
		if want := p.oracle(req); len(want.Tokens) >= n {
			return req, want
		}
	}
	require.Fail(p.t, "no long answer was found")
	return nil, workload.Result{}
}

func flip(b []byte, every int) {
	for i := every; i < len(b); i += spec.TagBytes {
		b[i] ^= 1
	}
}

func TestFirstToken_TagOfAPageChanges_NothingLeaves(t *testing.T) {
	p := startPair(t, func(c *config.Config) { c.Decode.Workers = 1 })
	held, release := make(chan struct{}), make(chan struct{})
	d := p.decode.decode
	d.step.put(func() { // the one worker: what was verified waits behind it
		close(held)
		<-release
		clear(d.ranks[0].mem[spec.Aux].Tags)
	})
	<-held
	ended := make(chan error, 1)
	go func() {
		tokens, _, err := p.answer(testRequest(20, 1, 5))
		if len(tokens) > 0 {
			err = errors.New("a token left")
		}
		ended <- err
	}()
	require.Eventually(t, func() bool { return p.decode.Status(t.Context()).Decode.Ranks[0].Leases.Ready == 1 }, patience, time.Millisecond)
	close(release)
	err := <-ended
	require.Equal(t, api.KVMismatch, api.CodeOf(err), "%v", err)
	p.ready()
	p.idle()
}

func TestStop_MachineStops_NothingIsServedAndRequestsFail(t *testing.T) {
	p := startPair(t, func(c *config.Config) { c.Sizes.Window, c.Sizes.Pool, c.Prefill.Chunk = 16384, 16384, 32 })
	ended := make(chan error, 1)
	go func() {
		_, _, err := p.answer(testRequest(8000, 1, 1000))
		ended <- err
	}()
	require.Eventually(t, func() bool { return p.decode.Status(t.Context()).Decode.Leader.Filling == 1 }, patience, time.Millisecond)
	p.decode.decode.box.put(func() { p.decode.decode.fatal(errors.New("a test says so")) })
	<-p.decode.Stopped()
	require.ErrorIs(t, p.decode.Err(), ErrStopped)
	require.Equal(t, api.Internal, api.CodeOf(<-ended))
	require.ErrorIs(t, p.decode.Ready(t.Context()), ErrStopped)
	_, _, err := p.answer(testRequest(10, 2, 2))
	require.Equal(t, api.Internal, api.CodeOf(err))
	var e *api.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, string(spec.CauseInvariant), e.Cause)
}

func TestDataStream_IsCut_TransferFailsOrSucceedsAndLinkComesBack(t *testing.T) {
	for _, kind := range []string{"tcp", "shm"} {
		t.Run(kind, func(t *testing.T) {
			p := startPair(t, func(c *config.Config) { c.Transport.Kind = kind })
			for i := range int32(3) {
				p.check(testRequest(30, i, 5))
				d := p.decode.decode
				require.True(t, d.loop.call(func() { // this end gives the path up under the machine's feet
					for _, l := range d.ranks[0].links {
						l.push.stop(everyEpoch, func(bool) {})
						l.pull.stop(everyEpoch, func(bool) {})
					}
				}))
				require.Eventually(t, func() bool { return d.fences() > uint64(i)+1 }, patience, 5*time.Millisecond)
				p.ready()
				require.Eventually(t, func() bool { // the path is opened again behind its fence; until then requests are refused
					_, _, err := p.answer(testRequest(30, 20+i, 5))
					require.True(t, err == nil || api.CodeOf(err) == api.PeerLost, "%v", err)
					return err == nil
				}, patience, 5*time.Millisecond)
			}
			p.check(testRequest(30, 9, 5))
			p.idle()
		})
	}
}

func (d *decodeSide) fences() (n uint64) {
	d.loop.call(func() { n = d.ranks[0].m.Status().Fences })
	return n
}
