package history

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// echo is a model for tests: the answer is the prompt, a token a byte, at most so many.
func echo(prompt string, most int) (Said, bool) {
	s := Said{Finish: "length", Prompt: len(prompt), Completion: most}
	if len(prompt) < most {
		s.Finish, s.Completion = "stop", len(prompt)
	}
	for _, b := range []byte(prompt)[:s.Completion] {
		s.Tokens += string(b) + "\n"
	}
	return s, len(prompt) < 10
}

func clientModel() porcupine.Model {
	return ClientAPI(echo, []Key{{"ka", "ann"}, {"kb", "bob"}}, false)
}

func ask(client, number int, key, prompt string) Ask {
	return Ask{Client: client, Number: number, Key: key, Prompt: prompt, Max: 3}
}

func said(prompt string) Said {
	s, _ := echo(prompt, 3)
	return s
}

func good(prompt string) Ended { return Ended{Status: 200, Said: said(prompt)} }

var ok = Opened{Status: 200}

// what each rule of the clients' API lets pass, and the nearest thing that it does not.
func TestClientAPI_ToldHistories_GoodOnesPassAndTheirLiesDoNot(t *testing.T) {
	a, b := ask(0, 1, "ka", "hello"), ask(1, 1, "kb", "world")
	a2 := ask(0, 2, "ka", "again")
	long := ask(0, 1, "ka", "far too long")
	lost, cut := Ended{Status: 502, Code: "peer_lost"}, Ended{Code: Cut}
	for _, c := range []struct {
		name string
		ops  []porcupine.Operation
		lie  any // the answer of the last operation that must not be
	}{
		{"each tenant gets its own", told(Whole{a}, good("hello"), Whole{b}, good("world")), good("hello")},
		{"one token more is another answer", told(Whole{a}, good("hello")), Ended{Status: 200, Said: Said{Tokens: "h\ne\nl\nl\n", Finish: "length", Prompt: 5, Completion: 4}}},
		{"a stream says the same", told(Open{a}, ok, Rest{a}, Ended{Said: said("hello")}), Ended{Said: said("world")}},
		{"a wrong count is another answer", told(Whole{a}, good("hello")), Ended{Status: 200, Said: Said{Tokens: "h\ne\nl\n", Finish: "length", Prompt: 4, Completion: 3}}},
		{"nothing fails without a fault", told(Whole{a}, good("hello")), lost},
		{"a fault gives reason for a failure", told(Fault{}, nil, Whole{a}, lost), Ended{Status: 500, Code: "internal"}},
		{"a fault is no reason for a mismatch", told(Fault{}, nil, Whole{a}, lost), Ended{Status: 502, Code: "kv_mismatch"}},
		{"a fault that is over gives none", told(Fault{}, nil, Healed{}, nil, Whole{a}, good("hello")), lost},
		{"a fault while a stream was open gives reason", told(Open{a}, ok, Fault{}, nil, Healed{}, nil, Rest{a}, Ended{Code: "peer_lost", Said: Said{Tokens: "h\n"}}), Ended{Code: "peer_lost", Said: Said{Tokens: "w\n"}}},
		{"an error stands in place of the end", told(Open{a}, ok, Fault{}, nil, Rest{a}, cut), Ended{Code: Cut, Said: said("hello")}},
		{"without prefill nothing new is answered", told(Down{}, nil, Whole{a}, lost), good("hello")},
		{"what was ready before is", told(Open{a}, ok, Down{}, nil, Rest{a}, Ended{Said: said("hello")}), Ended{Status: 200}},
		{"a key that is out of force is refused", told(Rotate{[]Key{{"kb", "bob"}}, true}, nil, Whole{a}, Ended{Status: 401, Code: "invalid_api_key"}), good("hello")},
		{"a key in force is not", told(Rotate{[]Key{{"kc", "ann"}}, false}, nil, Rotate{[]Key{{"kc", "ann"}}, true}, nil, Whole{ask(0, 1, "kc", "hello")}, good("hello")), Ended{Status: 401, Code: "invalid_api_key"}},
		{"too long is too long", told(Whole{long}, Ended{Status: 400, Code: "context_length_exceeded"}), Ended{Status: 200, Said: said("far too long")}},
		{"what fits is not too long", told(Whole{a}, good("hello")), Ended{Status: 400, Code: "context_length_exceeded"}},
		{"behind a drain nothing is admitted", told(Drain{true}, nil, Whole{a}, Ended{Status: 503, Code: "shutting_down"}), good("hello")},
		{"while keys change either may be seen", told(Rotate{[]Key{{"kb", "bob"}}, false}, nil, Whole{a}, good("hello"), Whole{a2}, Ended{Status: 401, Code: "invalid_api_key"}), lost},
		{"a key of both is not refused", told(Rotate{[]Key{{"ka", "ann"}}, false}, nil, Whole{a}, good("hello")), Ended{Status: 401, Code: "invalid_api_key"}},
		{"while it drains either may be seen", told(Drain{}, nil, Whole{a}, good("hello"), Whole{a2}, Ended{Status: 503, Code: "shutting_down"}), Ended{Status: 502, Code: "peer_lost"}},
	} {
		require.NoError(t, Check(clientModel(), c.ops), c.name)
		lie := append([]porcupine.Operation(nil), c.ops...)
		lie[len(lie)-1].Output = c.lie
		require.ErrorIs(t, Check(clientModel(), lie), ErrRefused, c.name)
	}
	for name, ops := range map[string][]porcupine.Operation{
		"a success behind a failure": told(Fault{}, nil, Open{a}, ok, Rest{a}, Ended{Code: "peer_lost"}, Rest{a}, Ended{Said: said("hello")}),
		"a second answer":            told(Whole{a}, good("hello"), Whole{a}, good("hello")),
		"a stream that was hung up":  told(Open{a}, ok, Hang{a}, nil, Rest{a}, Ended{Said: said("hello")}),
		"a stream never opened":      told(Rest{a}, Ended{Said: said("hello")}),
		"no operation":               told(1, nil),
		"no answer":                  told(Whole{a}, nil),
		"another kind of answer":     told(Open{a}, good("hello")),
	} {
		require.ErrorIs(t, Check(clientModel(), ops), ErrRefused, name)
	}
}

func TestClientAPI_OverCapacity_OnlyWhereItCanBeFull(t *testing.T) {
	ops := told(Whole{ask(0, 1, "ka", "x")}, Ended{Status: 429, Code: "over_capacity"})
	require.ErrorIs(t, Check(clientModel(), ops), ErrRefused)
	require.NoError(t, Check(ClientAPI(echo, []Key{{"ka", "ann"}}, true), ops))
}

// A failure that overlaps the fault is explained by it, one that came before is not.
func TestClientAPI_OverlappingFault_MayExplain(t *testing.T) {
	ops := told(Whole{ask(0, 1, "ka", "x")}, Ended{Status: 502, Code: "peer_lost"}, Fault{}, nil)
	require.ErrorIs(t, Check(clientModel(), ops), ErrRefused)
	require.NoError(t, Check(clientModel(), together(ops)))
}

func TestStreams_OpenAtOnce_AreCountedWithTheirTenant(t *testing.T) {
	a, a2, b := ask(0, 1, "ka", "x"), ask(0, 2, "ka", "x"), ask(1, 1, "kb", "x")
	tenant := func(key string) string { return key }
	all, most := Streams(told(Open{a}, ok, Open{b}, ok, Open{a2}, Opened{Status: 429}, Rest{b}, Ended{}, Open{a2}, ok, Hang{a}, nil, Rest{a2}, Ended{}), tenant)
	require.Equal(t, [2]int{2, 2}, [2]int{all, most})
	all, most = Streams(told(Open{a}, ok, Open{b}, ok, Open{a2}, ok), tenant)
	require.Equal(t, [2]int{3, 2}, [2]int{all, most})
	all, most = Streams(told(Open{a}, ok, Rest{a}, Ended{}, Open{a2}, ok, Hang{a2}, nil), tenant)
	require.Equal(t, [2]int{1, 1}, [2]int{all, most})
}

// A key goes out of force and then a link breaks while a request runs: it was let in with the key and failed by the link.
func TestClientAPI_KeyThenFaultWithinOneRequest_IsExplained(t *testing.T) {
	ops := told(Whole{ask(0, 1, "ka", "x")}, Ended{Status: 502, Code: "peer_lost"}, Rotate{[]Key{{"kc", "ann"}}, true}, nil, Fault{}, nil)
	ops[0].Call, ops[0].Return = 0, 100
	require.NoError(t, Check(clientModel(), ops))
	ops[0].Call = 6 // it came when the key was out of force
	require.ErrorIs(t, Check(clientModel(), ops), ErrRefused)
}
