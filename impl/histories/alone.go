package histories

import (
	"context"
	"fmt"
	"sync"

	"kvfence/impl/workload"
	"kvfence/model/history"
)

// Alone is what the reference model answers in one process, as the gateway says it: the oracle of client histories. window is in
// tokens. Safe for concurrent use; what it has worked out once it knows.
func Alone(m workload.Model, window int) history.Alone {
	var mu sync.Mutex
	known := map[string]history.Said{}
	return func(prompt string, most int) (history.Said, bool) {
		if len(prompt)+most > window {
			return history.Said{}, false
		}
		key := fmt.Sprint(most, " ", prompt)
		mu.Lock()
		defer mu.Unlock()
		if said, ok := known[key]; ok {
			return said, true
		}
		r, err := workload.Generate(context.Background(), m, workload.Encode(prompt), workload.Options{MaxTokens: most})
		if err != nil {
			return history.Said{Tokens: err.Error()}, true // no answer is this
		}
		said := history.Said{Tokens: Tokens(names(r.Tokens)), Finish: r.Finish, Prompt: len(prompt), Completion: len(r.Tokens)}
		known[key] = said
		return said, true
	}
}

// names are the names that the API has for tokens.
func names(ids []int32) (out []string) {
	for _, id := range ids {
		b := workload.TokenBytes(id)
		if len(b) == 1 && b[0] < 0x80 {
			out = append(out, string(b))
			continue
		}
		s := "bytes:"
		for _, x := range b {
			s += fmt.Sprintf("\\x%02x", x)
		}
		out = append(out, s)
	}
	return out
}
