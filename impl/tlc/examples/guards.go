package examples

import (
	"strings"

	"kvfence/impl/tlc"
)

// guard is a row of the design page's tables of guards. constants are those of the specification that make it; pull-X is X of Pull.tla.
type guard struct {
	says      string
	constants string
}

// preventionGuards keep a wrong thing from happening; each is dropped with detection off.
func preventionGuards() []guard {
	return []guard{
		{"Admission refuses what cannot fit", "Admit"},
		{"Complete names its parts, tokens, tenant", "CompleteNames"},
		{"Hold per lease and link: all receipts before release", "AllHolds AllParts"},
		{"Deferred release, decode side", "DeferRelease"},
		{"Deferred release, prefill side", "SrcHold"},
		{"Holds of local kernels", "LocalHold"},
		{"Write only what is sealed", "SealedOnly pull-SealedOnly"},
		{"Receipts only after drain, taken only after decode's half", "AckDrained TakeDrained GoneLists"},
		{"Only the granted incarnation answers", "OnlyGranted"},
		{"Fence before release on silence", "FenceFirst FenceRaises"},
		{"Fence waits for placers in progress", "FenceWaits pull-FenceWaits"},
		{"Marks", "MarkStart MarkForget"},
		{"Completion after visibility, per channel", "CompleteVisible ChannelAll"},
		{"Retry only after drain", "RetryDrained"},
		{"Epoch, incarnation, generation, nonce on everything", "PlaceChecks DecodeInc GenCheck NonceCheck"},
		{"First verdict is final", "FirstVerdict"},
		{"One writer for each part and record", "OneWriter"},
		{"Copy before append", "CopyFirst"},
		{"Source tag and epoch checked after the copy (pull)", "pull-SourceCheck pull-EpochCheck"},
	}
}

// detectionGuards find a wrong thing that has happened; each is dropped with a planted fault.
func detectionGuards() []guard {
	return []guard{
		{"Digest at verify", "DigestVerify"},
		{"Tag check before the step", "TagBefore"},
		{"Tag check after the step", "TagAfter"},
		{"Void tags at hand-out", "VoidTags pull-VoidTags"},
	}
}

// has says whether the configuration drops this guard: off-X, or off-X-more.
func (g guard) has(c *tlc.Configuration) bool {
	for _, name := range strings.Fields(g.constants) {
		if rest, ok := strings.CutPrefix(c.Name, "off-"+name); ok && (rest == "" || rest[0] == '-') {
			return true
		}
	}
	return false
}

// guardOf is the guard of the design page that c drops, or "".
func guardOf(c *tlc.Configuration) string {
	for _, g := range append(preventionGuards(), detectionGuards()...) {
		if g.has(c) {
			return g.says
		}
	}
	return ""
}
