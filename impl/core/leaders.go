package core

import "kvfence/spec"

// Leaders speak over the link between the two ranks 0; that link's machines own its header (incarnations, epoch, mark). Out: a
// leader's SendLeader or ReplyLeader becomes SayFor at its rank 0, which answers with a Send, or swallows it when the link is not
// open (who waits repeats). In: the rank tests the header of an Ask, Asked, AskFailed or Drop and passes the body up as PeerSaid.

// SayFor hands rank 0 a message of its leader (a SendLeader or ReplyLeader action), to be sent over its link with Peer.
type SayFor struct {
	event
	Peer PeerID
	Body spec.Message
}

// PeerSaid is a message of the leader of the side behind Peer, from rank 0 to its own leader: Ask and Drop at prefill, Asked and
// AskFailed at decode. Its header passed the link's tests: it came from the incarnation that the link is with, in its epoch.
type PeerSaid struct {
	side
	Peer PeerID
	Body spec.Message
}
