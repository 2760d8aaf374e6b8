package history

import (
	"cmp"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Operations of clients of a gateway, and of those who run it.
type (
	// Open asks for a stream; its answer, Opened, is the status line. Rest reads an opened stream to its end and answers Ended; Hang
	// closes it. Whole asks for an answer in one piece and answers Ended.
	Open  struct{ Ask Ask }
	Rest  struct{ Ask Ask }
	Hang  struct{ Ask Ask }
	Whole struct{ Ask Ask }
	// What follows is done by those who run the gateway, one after another. Each is a moment and answers nothing: what takes time has one
	// at its begin, from which on both may be seen, and one at its end. Rotate puts other keys in force.
	Rotate struct {
		Keys []Key
		Done bool
	}
	// Drain ends the admission of requests.
	Drain struct{ Done bool }
	// Fault breaks something; from then on requests may fail. Down says that no prefill node runs any more, Up that one may run again.
	// Healed says that nothing of what was broken is still to be felt.
	Fault  struct{}
	Down   struct{}
	Up     struct{}
	Healed struct{}
)

// Ask is one request: the number is its client's own and rises.
type Ask struct {
	Client, Number int
	Key            string
	Prompt         string
	Max            int // new tokens
}

// Key is an API key and whose it is.
type Key struct{ Key, Tenant string }

// Opened is a stream's status line. Status 0: the connection broke before it.
type Opened struct {
	Status int
	Code   string // of the error; "" with 200
}

// Ended is a whole answer, or the end of a stream.
type Ended struct {
	Status int    // of a whole answer; that of a stream stands in its Opened
	Code   string // of the error; "": the answer is whole; Cut: the connection broke
	Said   Said   // with an error: what came before it
}

// Cut is the code of an answer whose connection broke before its end.
const Cut = "connection cut"

// Said is an answer. Tokens are its tokens, written so that a beginning of the text is a beginning of the answer.
type Said struct {
	Tokens, Finish     string
	Prompt, Completion int // tokens, as counted by the gateway
}

// Alone is what one process alone answers to a request; false: it is too long.
type Alone func(prompt string, most int) (Said, bool)

// ClientAPI is the sequential specification of what the clients of a gateway see. Each request is answered once, for the tenant of its key, with
// what one process alone answers or with an error that something gives reason for: a key that is not in force, a prompt that does not fit,
// a drain, or a fault between its ask and its end. No stream ends well and badly, none goes on behind its end. busy says whether
// it may answer over_capacity; a run that cannot fill it has that off.
//
// Clients meet in nothing but the moments of those who run the gateway, so each client's history is judged for itself, with these
// moments in it. How many streams are open at once is no matter of order: see Streams.
func ClientAPI(alone Alone, keys []Key, busy bool) porcupine.Model {
	return porcupine.Model{
		Partition: byClient,
		Init:      func() any { return &clients{keys: slices.Clone(keys)} },
		Step: func(state, in, out any) (bool, any) {
			s := *state.(*clients)
			s.open = slices.Clone(s.open)
			if !(judge{&s, alone, busy}).step(in, out) {
				return false, state
			}
			return true, &s
		},
		Equal: func(a, b any) bool {
			x, y := a.(*clients), b.(*clients)
			return x.flags == y.flags && x.last == y.last && x.inside == y.inside && x.hit == y.hit && slices.Equal(x.keys, y.keys) && slices.Equal(x.next, y.next) && slices.Equal(x.open, y.open)
		},
	}
}

// asked is the request of an operation; false: it is a moment of those who run the gateway.
func asked(in any) (a Ask, ok bool) {
	switch x := in.(type) {
	case Open:
		return x.Ask, true
	case Rest:
		return x.Ask, true
	case Hang:
		return x.Ask, true
	case Whole:
		return x.Ask, true
	case enter:
		return x.Ask, true
	}
	return a, false
}

// enter is the moment at which a request is let in: its key is known, and nothing drains. It comes before the answer, at any time of the
// request: between the two, keys may change and links may break.
type enter struct{ Ask Ask }

// enters reports whether a request that was answered so was let in before. One that was told of a shutdown may not have been.
func enters(out any) bool {
	switch x := out.(type) {
	case Opened:
		return x.Status != 401 && x.Code != "shutting_down"
	case Ended:
		return x.Status != 401 && x.Code != "shutting_down"
	}
	return false
}

// byClient gives each client its operations, each request with the moment at which it was let in, and all moments of others. What is no
// operation at all is in every part, and refused there.
func byClient(ops []porcupine.Operation) (parts [][]porcupine.Operation) {
	most := 0
	for _, op := range ops {
		if a, ok := asked(op.Input); ok {
			most = max(most, a.Client)
		}
	}
	parts = make([][]porcupine.Operation, most+1)
	for _, op := range ops {
		a, ok := asked(op.Input)
		switch op.Input.(type) {
		case Open, Whole:
			if enters(op.Output) {
				parts[a.Client] = append(parts[a.Client], porcupine.Operation{ClientId: op.ClientId, Input: enter{a}, Call: op.Call, Return: op.Return})
			}
		}
		for i := range parts {
			if !ok || i == a.Client {
				parts[i] = append(parts[i], op)
			}
		}
	}
	return parts
}

// Streams is how many streams were certainly open at once, of all tenants and of one: those whose status line was there and that nobody
// had begun to read to the end or closed. tenant is whose a key is, at any time.
func Streams(ops []porcupine.Operation, tenant func(key string) string) (all, most int) {
	type event struct {
		at  int64
		by  int
		who string
	}
	var events []event
	opened := map[Ask]bool{}
	for _, op := range ops {
		a, _ := asked(op.Input)
		switch op.Input.(type) {
		case Open:
			if o, ok := op.Output.(Opened); ok && o.Status == 200 {
				opened[a] = true
				events = append(events, event{op.Return, 1, tenant(a.Key)})
			}
		case Rest, Hang:
			if opened[a] {
				delete(opened, a)
				events = append(events, event{op.Call, -1, tenant(a.Key)})
			}
		}
	}
	slices.SortStableFunc(events, func(x, y event) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.by, y.by)) })
	now, of := 0, map[string]int{}
	for _, e := range events {
		now += e.by
		of[e.who] += e.by
		all, most = max(all, now), max(most, of[e.who])
	}
	return all, most
}

// clients is the state: what those who run the gateway did, and the streams of one client.
type clients struct {
	flags
	keys, next []Key // in force; those that may be
	open       []stream
	last       int  // number of the last request that was let in or refused
	inside     int  // number of the request that is let in and not answered; 0: none
	hit        bool // something broke since that was let in
}

type flags struct{ rotating, draining, drained, down, shaky bool }

// stream is one that is open.
type stream struct {
	ask Ask
	hit bool // something broke while it was open
}

// judge carries out one operation on s.
type judge struct {
	s     *clients
	alone Alone
	busy  bool
}

func (j judge) step(in, out any) bool {
	s := j.s
	if a, ok := asked(in); ok {
		return j.request(in, a, out)
	}
	switch x := in.(type) {
	case Rotate:
		s.rotating, s.next = !x.Done, x.Keys
		if x.Done {
			s.keys, s.next = x.Keys, nil
		}
	case Drain:
		s.draining, s.drained = true, x.Done
	case Fault:
		s.shaky = true
		j.hit()
	case Down:
		s.down = true
		j.hit()
	case Up:
		s.down, s.shaky = false, true
	case Healed:
		s.shaky = false
	default:
		return false
	}
	return out == nil
}

func (j judge) request(in any, a Ask, out any) bool {
	s := j.s
	i := slices.IndexFunc(s.open, func(x stream) bool { return x.ask == a })
	switch in.(type) {
	case enter:
		may, _ := j.keyed(a.Key)
		fresh := a.Number > s.last
		s.last, s.inside, s.hit = a.Number, a.Number, j.broken()
		return fresh && may && !j.s.drained && out == nil
	case Open, Whole:
		if enters(out) != (s.inside == a.Number) || s.inside == 0 && a.Number <= s.last {
			return false
		}
		s.last, s.inside = a.Number, 0
		if o, ok := out.(Opened); ok {
			_, open := in.(Open)
			return open && j.opened(a, o)
		}
		e, ok := out.(Ended)
		_, whole := in.(Whole)
		return ok && whole && j.whole(a, e)
	case Hang:
		if i >= 0 {
			s.open = slices.Delete(s.open, i, i+1)
		}
		return i >= 0 && out == nil
	}
	e, ok := out.(Ended)
	if !ok || i < 0 || e.Status != 0 {
		return false
	}
	hit := s.open[i].hit || j.broken()
	s.open = slices.Delete(s.open, i, i+1)
	return j.ended(a, e, hit)
}

// hit marks all that is open or let in.
func (j judge) hit() {
	j.s.hit = true
	for i := range j.s.open {
		j.s.open[i].hit = true
	}
}

// keyed says whether a key may be known now, and whether it may be unknown.
func (j judge) keyed(key string) (may, mayNot bool) {
	has := func(keys []Key) bool {
		return slices.ContainsFunc(keys, func(k Key) bool { return k.Key == key })
	}
	now := has(j.s.keys)
	if !j.s.rotating {
		return now, !now
	}
	next := has(j.s.next)
	return now || next, !now || !next
}

// opened judges a status line, and keeps what is open.
func (j judge) opened(a Ask, o Opened) bool {
	if o.Status != 200 || o.Code != "" {
		return j.refused(a, o.Status, o.Code)
	}
	j.s.open = append(j.s.open, stream{a, j.s.hit || j.broken()})
	return j.admits(a)
}

// admits reports whether a request that was let in can be answered well now.
func (j judge) admits(a Ask) bool {
	_, fits := j.alone(a.Prompt, a.Max)
	return fits && !j.s.down
}

// refused judges an error before any answer.
func (j judge) refused(a Ask, status int, code string) bool {
	_, mayNot := j.keyed(a.Key)
	_, fits := j.alone(a.Prompt, a.Max)
	switch code {
	case "invalid_api_key":
		return status == 401 && mayNot && !j.s.drained
	case "shutting_down":
		return status == 503 && (j.s.draining || j.broken())
	case "context_length_exceeded":
		return status == 400 && !fits
	case "over_capacity":
		return status == 429 && j.busy
	case Cut:
		return status == 0 && j.broken()
	}
	return status == causes(code) && j.broken()
}

func (j judge) broken() bool { return j.s.shaky || j.s.down }

// causes are the errors that a fault may have for a request that fits, with their statuses; 1: it may have no such error.
func causes(code string) int {
	switch code {
	case "peer_lost":
		return 502
	case "deadline":
		return 504
	case "shutting_down":
		return 503
	}
	return 1
}

func (j judge) whole(a Ask, e Ended) bool {
	if e.Code != "" || e.Status != 200 {
		return e.Said == Said{} && j.refused(a, e.Status, e.Code)
	}
	return j.admits(a) && j.ended(a, e, false)
}

// ended judges an end: all of what one process alone says, or a true beginning of it and an error that a fault gives reason for.
func (j judge) ended(a Ask, e Ended, hit bool) bool {
	want, _ := j.alone(a.Prompt, a.Max)
	if e.Code == "" {
		return e.Said == want
	}
	return hit && (e.Code == Cut || causes(e.Code) > 1) && e.Said.Finish == "" && strings.HasPrefix(want.Tokens, e.Said.Tokens)
}
