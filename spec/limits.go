package spec

// Bounds of what a message may carry. Each list is bounded by its limit and by the bytes that remain in the body, whichever
// is less; a length that a peer names reserves nothing.
const (
	// MaxBody is the largest body: the largest prompt (MaxPrompt tokens, 32 MiB) and the largest manifest fit with room.
	MaxBody = 64 << 20
	// MaxHandshakeBody is the largest Connect, Accept or Refuse. A receiver allows no more before the peer is known.
	MaxHandshakeBody = 64 << 10
	// MaxName bounds the name of a node, a capability, an address and a field.
	MaxName = 256
	// MaxLabel bounds what a client may choose: outside ids, tenant, salt, adapter.
	MaxLabel = 1024
	// MaxText bounds details and values for people; a longer one is cut when it is sent.
	MaxText = 4096
	// MaxCapabilities bounds the capabilities of one node.
	MaxCapabilities = 64
	// MaxPrompt bounds the tokens of one request on the wire; what a node admits is far less and is admission's to say.
	MaxPrompt = 1 << 23
	// MaxLeasePages bounds the pages of one component in one lease: MaxPrompt tokens in pages of two.
	MaxLeasePages = 1 << 22
	// MaxParts bounds the parts of one message: every tag slot of every component.
	MaxParts = MaxTagSlots * int(ComponentCount)
	// MaxChannels bounds the data streams, rails or queue pairs that one receipt lists.
	MaxChannels = 4096
	// MaxTemperature bounds Sampling.Temperature.
	MaxTemperature = 100
)
