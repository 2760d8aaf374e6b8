// Package gateway is the OpenAI-compatible HTTP front: it knows callers (API keys, or
// one named proxy), gives each tenant its bounded share, turns bodies into requests
// of impl/node/api and their events into answers.
//
// Its promises: no status line leaves before every choice of a request is ready
// (verified at decode); a 200 that is not a stream leaves only after done; a stream
// that fails later ends with an error event, without finish_reason and [DONE]; a
// tenant comes from the caller's identity and from nothing in the body; every
// parameter is honoured or refused with 400.
//
// It does not judge whether a prompt fits (the decode leader does), own pages, retry,
// read configuration files other than its key file, or log prompts and answers. A
// client that goes away closes the backend's stream; what happens to writes in flight
// is the nodes' business.
//
// impl/cmd/kvfence starts it: [New], [Gateway.Serve]; metrics, status and drain are
// served by the operator package below it. Read server.go first, then run.go.
package gateway
