package spec

import "fmt"

// codec parses and appends the body of one kind.
type codec struct {
	parse  func(*cursor) Message
	append func(*cursor, Message) bool // false: the message is not a value of this kind's type
}

// walker is a message whose fields a cursor can walk.
type walker[T Message] interface {
	*T
	walk(*cursor)
}

func codecFor[T Message, P walker[T]]() codec {
	return codec{
		parse: func(c *cursor) Message {
			var m T
			P(&m).walk(c)
			return m
		},
		append: func(c *cursor, m Message) bool {
			v, ok := m.(T)
			if ok {
				P(&v).walk(c)
			}
			return ok
		},
	}
}

func codecOf(k Kind) (codec, bool) {
	switch k {
	case KindConnect:
		return codecFor[Connect](), true
	case KindAccept:
		return codecFor[Accept](), true
	case KindRefuse:
		return codecFor[Refuse](), true
	case KindPing:
		return codecFor[Ping](), true
	case KindPong:
		return codecFor[Pong](), true
	case KindAsk:
		return codecFor[Ask](), true
	case KindAsked:
		return codecFor[Asked](), true
	case KindAskFailed:
		return codecFor[AskFailed](), true
	case KindDrop:
		return codecFor[Drop](), true
	case KindGrant:
		return codecFor[Grant](), true
	case KindOffer:
		return codecFor[Offer](), true
	case KindComplete:
		return codecFor[Complete](), true
	}
	return leaseCodecOf(k)
}

// leaseCodecOf has the kinds that end or query a lease.
func leaseCodecOf(k Kind) (codec, bool) {
	switch k {
	case KindFailing:
		return codecFor[Failing](), true
	case KindFailed:
		return codecFor[Failed](), true
	case KindAbort:
		return codecFor[Abort](), true
	case KindAbortAck:
		return codecFor[AbortAck](), true
	case KindGone:
		return codecFor[Gone](), true
	case KindRead:
		return codecFor[Read](), true
	case KindFenced:
		return codecFor[Fenced](), true
	case KindRefused:
		return codecFor[Refused](), true
	}
	return codec{}, false
}

// String is the kind's name in traces, metrics and errors.
func (k Kind) String() string {
	names := [...]string{"", "connect", "accept", "refuse", "ping", "pong", "ask", "asked", "ask_failed", "drop", "grant", "offer",
		"complete", "failing", "failed", "abort", "abort_ack", "gone", "read", "fenced", "refused"}
	if k == 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind(%d)", uint16(k))
	}
	return names[k]
}
