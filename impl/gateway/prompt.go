package gateway

import (
	"bytes"
	"encoding/json"
)

// parsePrompts reads the four forms: a string, a list of strings, a list of token
// ids, a list of lists of token ids. A list of strings or of lists is a batch.
func parsePrompts(raw json.RawMessage, tok Tokenizer, most int) ([][]int32, *failure) {
	bad := badParam("prompt", "prompt must be a string, a list of strings, a list of token ids or a list of such lists")
	if raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil, bad
		}
		return checkPrompts([][]int32{tok.Encode(text)}, tok)
	}
	if raw[0] != '[' {
		return nil, bad
	}
	// The first element decides; the others must be of its kind.
	switch first := bytes.TrimLeft(raw[1:], " \t\r\n"); first[0] {
	case ']':
		return nil, badParam("prompt", "prompt is an empty list")
	case '"':
		var texts []string
		if json.Unmarshal(raw, &texts) != nil || hasNull(raw) {
			return nil, bad
		}
		if len(texts) > most {
			return nil, badParam("prompt", "%d prompts; at most %d a request", len(texts), most)
		}
		prompts := make([][]int32, len(texts))
		for i, t := range texts {
			prompts[i] = tok.Encode(t)
		}
		return checkPrompts(prompts, tok)
	case '[':
		var lists []json.RawMessage
		if json.Unmarshal(raw, &lists) != nil {
			return nil, bad
		}
		if len(lists) > most {
			return nil, badParam("prompt", "%d prompts; at most %d a request", len(lists), most)
		}
		prompts := make([][]int32, len(lists))
		for i, l := range lists {
			ids, ok := parseIDs(l)
			if !ok {
				return nil, bad
			}
			prompts[i] = ids
		}
		return checkPrompts(prompts, tok)
	}
	ids, ok := parseIDs(raw)
	if !ok {
		return nil, bad
	}
	return checkPrompts([][]int32{ids}, tok)
}

// parseIDs reads a JSON list of whole numbers that is known to be valid JSON. A prompt
// may have a million of them, for which encoding/json takes a tenth of a second.
// Numbers beyond int32 become -1, which no vocabulary has.
func parseIDs(raw json.RawMessage) ([]int32, bool) {
	if len(raw) < 2 || raw[0] != '[' || raw[len(raw)-1] != ']' {
		return nil, false
	}
	ids := make([]int32, 0, bytes.Count(raw, []byte{','})+1)
	for rest := raw[1 : len(raw)-1]; len(rest) > 0; {
		element, after, _ := bytes.Cut(rest, []byte{','})
		rest = after
		element = bytes.TrimSpace(element)
		if len(element) == 0 { // valid JSON: only in a list of nothing
			return ids, len(ids) == 0
		}
		id := int64(0)
		for i, c := range element {
			if c == '-' && i == 0 && len(element) > 1 {
				continue
			}
			if c < '0' || c > '9' {
				return nil, false
			}
			id = min(id*10+int64(c-'0'), 1<<40)
		}
		if element[0] == '-' && id > 0 || id > 1<<31-1 {
			id = -1
		}
		ids = append(ids, int32(id))
	}
	return ids, true
}

// hasNull finds a null element: json.Unmarshal would take it for an empty string or 0.
func hasNull(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte("null")) {
		return false
	}
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return true
	}
	for _, e := range elements {
		if string(e) == "null" {
			return true
		}
	}
	return false
}

func checkPrompts(prompts [][]int32, tok Tokenizer) ([][]int32, *failure) {
	for i, p := range prompts {
		if len(p) == 0 {
			return nil, badParam("prompt", "prompt %d has no tokens", i)
		}
		for at, id := range p {
			if id < 0 || int(id) >= tok.Vocab() {
				return nil, badParam("prompt", "token %d at position %d of prompt %d is outside the vocabulary (0..%d)", id, at, i, tok.Vocab()-1)
			}
		}
	}
	return prompts, nil
}
