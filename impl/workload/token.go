package workload

// Byte-level tokens: ids 0..255 are the bytes themselves.
const (
	BOS   int32 = 256 // begins a sequence or a chat message
	EOS   int32 = 257 // ends generation; never part of an answer's text
	Vocab       = 258 // number of token ids
)

// Encode returns one token a byte of text, and nothing else: no BOS, no EOS.
func Encode(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}

// TokenBytes returns the bytes that a token stands for: one for a byte token,
// none for BOS, EOS and ids outside the vocabulary.
func TokenBytes(id int32) []byte {
	if id < 0 || id > 255 {
		return nil
	}
	return []byte{byte(id)}
}

// Decode returns the bytes of ids, one after another, leaving out special tokens.
func Decode(ids []int32) []byte {
	out := make([]byte, 0, len(ids))
	for _, id := range ids {
		if id >= 0 && id <= 255 {
			out = append(out, byte(id))
		}
	}
	return out
}

// StopHit says whether the tokens generated so far end with one of the stop
// sequences. Empty sequences never match.
func StopHit(generated []int32, stop [][]int32) bool {
	for _, s := range stop {
		if len(s) == 0 || len(s) > len(generated) {
			continue
		}
		tail := generated[len(generated)-len(s):]
		equal := true
		for i := range s {
			if tail[i] != s[i] {
				equal = false
				break
			}
		}
		if equal {
			return true
		}
	}
	return false
}
