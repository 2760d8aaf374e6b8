package gateway

import (
	"fmt"
	"strings"

	"kvfence/impl/workload"
)

// Tokenizer turns text into token ids and back. Immutable, safe for concurrent use.
type Tokenizer interface {
	// Encode returns the tokens of a plain prompt.
	Encode(text string) []int32
	// Chat returns the tokens of a conversation, ending where the assistant speaks.
	Chat(messages []Message) []int32
	// Bytes returns what a token adds to a text: part of a UTF-8 character, or nothing.
	Bytes(id int32) []byte
	// Name is a printable name of a token whose Bytes are empty.
	Name(id int32) string
	// Vocab is the number of token ids.
	Vocab() int
}

// Message is one turn of a conversation.
type Message struct{ Role, Name, Content string }

// ByteTokenizer is the reference workload's: one token a byte. A plain prompt is its
// bytes and nothing else. Its chat template is, for each message,
//
//	BOS role [" " name] "\n" content
//
// and at the end BOS "assistant\n". No text contains BOS, so no content can pretend to
// be another message.
type ByteTokenizer struct{}

// Encode implements [Tokenizer].
func (ByteTokenizer) Encode(text string) []int32 { return workload.Encode(text) }

// Chat implements [Tokenizer].
func (ByteTokenizer) Chat(messages []Message) []int32 {
	var ids []int32
	for _, m := range messages {
		head := m.Role
		if m.Name != "" {
			head += " " + m.Name
		}
		ids = append(ids, workload.BOS)
		ids = append(ids, workload.Encode(head+"\n"+m.Content)...)
	}
	ids = append(ids, workload.BOS)
	return append(ids, workload.Encode("assistant\n")...)
}

// Bytes implements [Tokenizer].
func (ByteTokenizer) Bytes(id int32) []byte { return workload.TokenBytes(id) }

// Name implements [Tokenizer].
func (ByteTokenizer) Name(id int32) string {
	switch id {
	case workload.BOS:
		return "<bos>"
	case workload.EOS:
		return "<eos>"
	}
	return fmt.Sprintf("<token %d>", id)
}

// Vocab implements [Tokenizer].
func (ByteTokenizer) Vocab() int { return workload.Vocab }

// detokenize is the text of whole prompts, for echo.
func detokenize(t Tokenizer, ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(t.Bytes(id))
	}
	return validText(b.String())
}

// validText replaces each byte that is not UTF-8, as the stream of an answer does.
func validText(s string) string {
	var b strings.Builder
	for _, r := range s { // a wrong byte reads as U+FFFD
		b.WriteRune(r)
	}
	return b.String()
}
