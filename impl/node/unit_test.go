package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/transport/tcp"
	"kvfence/impl/workload"
	"kvfence/spec"
)

func TestAux_Record_ReadsBackEqual(t *testing.T) {
	page := bytes.Repeat([]byte{0xaa}, AuxBytes)
	r := auxRecord{Tokens: 77, First: core.Token{ID: 5, Logprob: -1.5, Top: []core.TopToken{{ID: 5, Logprob: -1.5}, {ID: 9, Logprob: -2}}}}
	require.NoError(t, putAux(page, r))
	got, err := getAux(page, workload.Vocab)
	require.NoError(t, err)
	require.Equal(t, r, got)
	require.Equal(t, make([]byte, AuxBytes-auxFixed-2*auxTop), page[auxFixed+2*auxTop:], "nothing of the page's last owner stays")
}

func TestAux_Malformed_IsRefused(t *testing.T) {
	page := make([]byte, AuxBytes)
	_, err := getAux(page, workload.Vocab)
	require.ErrorIs(t, err, errAux, "a page never written")
	require.NoError(t, putAux(page, auxRecord{Tokens: 1, First: core.Token{ID: workload.Vocab}}))
	_, err = getAux(page, workload.Vocab)
	require.ErrorIs(t, err, errAux, "a token outside of the vocabulary")
	require.ErrorIs(t, putAux(page, auxRecord{First: core.Token{Top: make([]core.TopToken, auxMaxTop+1)}}), errAux)
}

// FuzzAux: a page is no record, or it is exactly the one that its writer writes, whatever stands behind it.
func FuzzAux(f *testing.F) {
	page := make([]byte, AuxBytes)
	if err := putAux(page, auxRecord{Tokens: 3, First: core.Token{ID: 4, Top: []core.TopToken{{ID: 1}}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(page)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := getAux(b, workload.Vocab)
		if err != nil {
			require.ErrorIs(t, err, errAux)
			return
		}
		again := bytes.Repeat([]byte{0xaa}, len(b))
		require.NoError(t, putAux(again, r))
		end := auxFixed + auxTop*len(r.First.Top)
		require.Equal(t, b[:end], again[:end])
		require.Equal(t, make([]byte, len(b)-end), again[end:])
	})
}

func TestSideKV_AnySplit_ModelSeesTheSameCache(t *testing.T) {
	m, err := workload.New(workload.Config{Heads: 4, HeadDim: 8, Layers: 2, MaxWindow: 64})
	require.NoError(t, err)
	prompt := testRequest(37, 1, 1).Prompt
	flat := workload.NewFlat(m.Geometry(), 64)
	want, err := m.Prefill(t.Context(), flat, prompt, 0, len(prompt))
	require.NoError(t, err)
	for _, c := range []struct {
		ranks int
		split string
	}{{1, "heads"}, {2, "heads"}, {4, "heads"}, {2, "layers"}} {
		cfg := config.Config{}
		cfg.Sizes.Page, cfg.Sizes.AuxSlots, cfg.Sizes.TagSlots = 8, 1, 1
		ls, err := layouts(cfg, m, c.ranks, c.split, 64)
		require.NoError(t, err)
		var mems []device.Memory
		var pages [][]spec.GrantedPage
		for k := range ls {
			mem, _, _, err := makeMemory(nil, ls[k], false)
			require.NoError(t, err)
			mems = append(mems, mem)
			pages = append(pages, []spec.GrantedPage{{Page: 6}, {Page: spec.PageID(k)}, {Page: 4}, {Page: 7}, {Page: 5}})
		}
		kv, err := newSideKV(m.Geometry(), mems, pages)
		require.NoError(t, err)
		got, err := m.Prefill(t.Context(), kv, prompt, 0, len(prompt))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Nil(t, kv.Slot(0, 0, 0, 40), "no page holds this position")
	}
}

func TestLayouts_ModelThatCannotBeDivided_IsRefused(t *testing.T) {
	m, err := workload.New(workload.Config{Heads: 4})
	require.NoError(t, err)
	cfg := config.Config{}.WithDefaults()
	_, err = layouts(cfg, m, 3, "heads", 64)
	require.ErrorIs(t, err, ErrSplit)
	require.ErrorContains(t, err, "4 heads over 3 ranks")
}

func TestPreflight_WindowOverPool_SaysBothNumbersAndWhatToChange(t *testing.T) {
	cfg := config.Config{}
	cfg.Sizes.Window, cfg.Sizes.PrefillPool, cfg.Sizes.DecodePool = 1048576, 681280, 2040000
	err := Preflight(cfg.WithDefaults())
	require.ErrorIs(t, err, ErrPreflight)
	require.EqualError(t, err, "preflight: window 1048576 tokens does not fit the prefill pool of 681280 tokens: lower --window-tokens to 681280, "+
		"raise --pool-tokens (or --prefill-pool-tokens) to 1048576, or start with --allow-window-over-pool")
	cfg.Role = config.RoleDecode
	require.NoError(t, Preflight(cfg.WithDefaults()), "a decode node's pool holds it")
}

func TestPreflight_PoolsOverMemory_SaysHowMuchAndWhatToLower(t *testing.T) {
	cfg := config.Config{}
	cfg.Sizes.Pool = 2_000_000_000
	err := memoryFits(cfg.WithDefaults(), 1<<30)
	require.ErrorIs(t, err, ErrPreflight)
	for _, want := range []string{"may have 1024 MiB", "the prefill pool of 2000000000 tokens", "the decode pool of 2000000000 tokens", "lower --pool-tokens"} {
		require.ErrorContains(t, err, want)
	}
	cfg.Role = config.RoleDecode
	require.NotContains(t, memoryFits(cfg.WithDefaults(), 1<<30).Error(), "the prefill pool")
	_, err = Start(cfg.WithDefaults(), slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, ErrPreflight, "before anything is allocated")
	require.NoError(t, memoryFits(config.Config{}.WithDefaults(), 1<<30))
	require.Greater(t, machineMemory(), uint64(1<<28))
}

func TestStart_CongestionControlOfAnotherMachine_IsRefusedByName(t *testing.T) {
	cfg := config.Config{}
	cfg.Transport.CongestionControl = "nosuch"
	for _, role := range []config.Role{config.RoleAll, config.RolePrefill, config.RoleDecode} {
		cfg.Role = role
		_, err := Start(cfg.WithDefaults(), slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, config.ErrConfig)
		require.ErrorContains(t, err, `transport.congestion_control: tcp transport options: congestion control "nosuch"`)
		require.ErrorContains(t, err, "reno")
	}
	cfg.Transport.CongestionControl = tcp.KeepCongestion
	require.NoError(t, congestion(cfg.WithDefaults()))
}

// recorder is a path of ends.
type recorder struct{ fences int }

func newEnds() *ends[*recorder] {
	s := &ends[*recorder]{}
	s.fence = func(r *recorder) { r.fences++ }
	return s
}

func TestEnds_FenceOfNothing_IsDoneAtOnce(t *testing.T) {
	done := 0
	newEnds().stop(9, func(bool) { done++ })
	require.Equal(t, 1, done)
}

func TestEnds_FenceWhileOpening_WaitsForTheOpening(t *testing.T) {
	s, done, cancelled := newEnds(), 0, false
	e := s.open(1, func() { cancelled = true })
	s.stop(1, func(bool) { done++ })
	require.True(t, cancelled)
	require.Zero(t, done)
	p := &recorder{}
	require.NotEmpty(t, s.opened(e, p, nil), "DataUp says that it is not up")
	require.Equal(t, 1, p.fences)
	require.Zero(t, done)
	s.over(e)
	require.Equal(t, 1, done)

	e = s.open(2, func() {})
	s.stop(2, func(bool) { done++ })
	require.NotEmpty(t, s.opened(e, nil, errors.New("refused")))
	require.Equal(t, 2, done)
}

func TestEnds_TwoFences_EachIsDoneOnceAndYoungerStay(t *testing.T) {
	s, first, second := newEnds(), 0, 0
	one, two := &recorder{}, &recorder{}
	e1, e2 := s.open(1, func() {}), s.open(2, func() {})
	require.Empty(t, s.opened(e1, one, nil))
	require.Empty(t, s.opened(e2, two, nil))
	s.stop(1, func(bool) { first++ })
	_, ok := s.at(1)
	require.False(t, ok, "nothing more is posted")
	_, ok = s.at(2)
	require.True(t, ok)
	s.stop(2, func(bool) { second++ })
	require.Equal(t, 1, one.fences)
	require.Equal(t, 1, two.fences)
	s.over(e2)
	require.Zero(t, first+second)
	s.over(e1)
	require.Equal(t, 1, first)
	require.Equal(t, 1, second)
	require.False(t, e1.loss(), "the loss of a fenced path is no news")
}

// An end whose fence failed is not fenced by a later one, which covers it, too.
func TestEnds_FenceThatFailed_LaterFencesFailToo(t *testing.T) {
	s := newEnds()
	e := s.open(5, func() {})
	require.Empty(t, s.opened(e, &recorder{}, nil))
	var said []bool
	say := func(ok bool) { said = append(said, ok) }
	s.stop(5, say)
	e.failed = true
	s.over(e)
	s.stop(6, say)
	younger := s.open(7, func() {})
	require.Empty(t, s.opened(younger, &recorder{}, nil))
	s.stop(7, say)
	s.over(younger)
	s.stop(4, say)
	require.Equal(t, []bool{false, false, false, true}, said)
}

func TestGreeting_StrangerOrMissingRank_IsRefused(t *testing.T) {
	n := startNode(t, small(t, config.RolePrefill, nil))
	_, _, err := dialControl(t.Context(), n.Addresses().Control, "", 5, nil, patience, 16)
	require.ErrorIs(t, err, ErrNoRank)

	nc, err := net.Dial("tcp", n.Addresses().Control)
	require.NoError(t, err)
	defer func() { require.NoError(t, nc.Close()) }()
	_, err = nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.ReadAll(nc)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the connection was not closed")
}

func TestConn_PeerDoesNotRead_QueueFillsAndItCloses(t *testing.T) {
	a, b := net.Pipe()
	defer func() { _ = b.Close() }()
	c := newConn(a, 4)
	lost := make(chan error, 1)
	c.start(func(spec.Envelope, func()) {}, func(error) {}, func(err error) { lost <- err })
	env := spec.Envelope{Header: spec.Header{From: spec.Incarnation{1}, To: spec.Incarnation{2}}, Body: spec.Ping{Number: 1}}
	var err error
	for range 10000 {
		if err = c.send(env); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, errQueueFull)
	select {
	case <-lost:
	case <-time.After(patience):
		require.Fail(t, "the connection did not end")
	}
}

func TestConn_Finish_SendsWhatWasQueuedBefore(t *testing.T) {
	a, b := net.Pipe()
	c := newConn(a, 8)
	c.start(func(spec.Envelope, func()) {}, func(error) {}, func(error) {})
	for i := range uint64(3) {
		require.NoError(t, c.send(spec.Envelope{Header: spec.Header{From: spec.Incarnation{1}, To: spec.Incarnation{2}}, Body: spec.Pong{Number: i}}))
	}
	require.NoError(t, c.finish())
	for i := range uint64(3) {
		e, _, err := spec.ReadEnvelope(b, nil)
		require.NoError(t, err)
		require.Equal(t, spec.Pong{Number: i}, e.Body)
	}
	_, _, err := spec.ReadEnvelope(b, nil)
	require.ErrorIs(t, err, io.EOF)
}

func TestCaseB54_PortInUse_StartSaysWhichAndByWhatSetting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for setting, change := range map[string]func(*config.Config){
		"prefill.control": func(c *config.Config) { c.Prefill.Control = l.Addr().String() },
		"prefill.data":    func(c *config.Config) { c.Prefill.Data = l.Addr().String() },
		"decode.api":      func(c *config.Config) { c.Decode.API = l.Addr().String() },
		"gateway.listen":  func(c *config.Config) { c.Gateway.Listen = l.Addr().String() },
		"operator.listen": func(c *config.Config) { c.Operator.Listen = l.Addr().String() },
	} {
		_, err := Start(small(t, config.RoleAll, change), testLog(t))
		require.ErrorIs(t, err, ErrListen)
		require.EqualError(t, err, "cannot listen: "+setting+" = "+l.Addr().String()+" is in use by another process: stop it or choose another address")
	}
}

func TestCaseB54_AnotherNodeAnswersThePort_IdentityIsChecked(t *testing.T) {
	ca := newAuthority(t)
	p := startNode(t, small(t, config.RolePrefill, func(c *config.Config) { c.TLS = ca.issue("other") }))
	creds, err := loadCredentials(ca.issue("decode"), testLog(t))
	require.NoError(t, err)
	_, _, err = dialControl(t.Context(), p.Addresses().Control, "prefill", 0, creds, patience, 16)
	require.ErrorContains(t, err, "other", "TLS ends before any key is exchanged")

	stranger, err := loadCredentials(newAuthority(t).issue("decode"), testLog(t))
	require.NoError(t, err)
	_, _, err = dialControl(t.Context(), p.Addresses().Control, "other", 0, stranger, patience, 16)
	require.Error(t, err)
	_, _, err = dialControl(t.Context(), p.Addresses().Control, "other", 0, nil, patience, 16)
	require.Error(t, err, "plain")
}

func TestVouches_CertificateOfAnotherName_IsRefused(t *testing.T) {
	creds, err := loadCredentials(newAuthority(t).issue("decode-a"), testLog(t))
	require.NoError(t, err)
	leaf := creds.cert.Leaf
	require.NoError(t, vouches(leaf, "decode-a"))
	require.NoError(t, vouches(leaf, "decode-a/3"))
	require.ErrorIs(t, vouches(leaf, "decode-b"), ErrIdentity)
	require.ErrorIs(t, vouches(leaf, ""), ErrIdentity)
}

func TestCredentials_FilesChange_AreReadAgainAndBadOnesAreNot(t *testing.T) {
	ca := newAuthority(t)
	files := ca.issue("decode")
	creds, err := loadCredentials(files, testLog(t))
	require.NoError(t, err)
	old, _ := creds.current()
	ca.issue("decode") // the same files, another certificate
	creds.stamp[0].size++
	fresh, _ := creds.current()
	require.NotEqual(t, old.Certificate, fresh.Certificate)
	ca.write("decode.pem", "CERTIFICATE", []byte("no certificate"))
	creds.stamp[0].size++
	still, _ := creds.current()
	require.Equal(t, fresh.Certificate, still.Certificate)
}

func TestPool_Close_WaitsForTheRunningJobAndDropsTheRest(t *testing.T) {
	p := newPool(1)
	started, release := make(chan struct{}), make(chan struct{})
	ran := 0
	p.put(func() { close(started); <-release; ran++ })
	p.put(func() { ran += 100 })
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	go func() { p.close(); cancel() }()
	close(release)
	<-ctx.Done()
	require.Contains(t, []int{1, 101}, ran)
	p.put(func() { ran = -1 })
	require.NotEqual(t, -1, ran)
}

func TestDialable_ListenerOnAllAddresses_IsDialedWhereItsControlLinkIs(t *testing.T) {
	require.Equal(t, "10.0.0.9:7071", dialable("[::]:7071", "10.0.0.9:7070"))
	require.Equal(t, "[fe80::1]:7071", dialable("0.0.0.0:7071", "[fe80::1]:7070"))
	require.Equal(t, "10.0.0.8:7071", dialable("10.0.0.8:7071", "10.0.0.9:7070"))
	require.Equal(t, "prefill:7071", dialable("prefill:7071", "10.0.0.9:7070"))
}

func TestSocketDir_KilledNodesSocket_IsRemovedAndALiveOneStays(t *testing.T) {
	dir := shortDir(t)
	live, err := net.Listen("unixpacket", filepath.Join(dir, "live.sock"))
	require.NoError(t, err)
	defer func() { require.NoError(t, live.Close()) }()
	dead, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, "dead.sock"), Net: "unixpacket"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	require.NoError(t, removeStale(dir))
	require.FileExists(t, filepath.Join(dir, "dead.sock"), "it may be about to listen")
	old := time.Now().Add(-2 * staleAge)
	for _, name := range []string{"dead.sock", "live.sock"} {
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	require.NoError(t, removeStale(dir))
	require.NoFileExists(t, filepath.Join(dir, "dead.sock"))
	require.FileExists(t, filepath.Join(dir, "live.sock"))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.ErrorIs(t, makeSocketDir(dir), ErrListen)
}
