// Package lockstep holds the real machines of impl/core, with the ledger of impl/pages inside, beside the executable twin of the
// specification (model), step by step. A World is both sides of a small setting with everything that lies between them in
// explicit boxes: messages sent, receipts that came, device work, one-sided writes in the stages of TLA/Fabric.tla. Each action of
// TLA/Transfer.tla has one stimulus (do.go); after it the whole world is projected to a model.State and compared by ==.
//
// It runs no driver, opens no socket and reads no clock; it knows nothing of bytes beyond whose they are. Called by its tests and by
// impl/cmd/lockstep.
//
// Read next: settings.go and pinned.go (what is looked at), do.go (the stimuli), project.go (where each variable comes from),
// chain.go and filter.go (the refinement mapping: what the engine does in one step, and what it never does), replay.go.
package lockstep
