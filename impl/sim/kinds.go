package sim

// Kind is a kind of thing that a run does to a cluster: what a director draws, what a script lists, what a result counts.
type Kind string

// Class says what is expected of a kind.
type Class string

// The classes.
const (
	Use      Class = "use"      // what clients and operators do
	Allowed  Class = "allowed"  // the promise is kept all the same
	Detected Class = "detected" // breaks a guarantee of fabric or memory: the engine sees it, fails what it touches, raises the alarm
)

// What clients and operators do.
const (
	Ask        Kind = "ask"
	Half       Kind = "half"        // a prefill-first half, as an outside router starts it
	AskHalf    Kind = "ask-half"    // its name is handed to decode
	SameLabel  Kind = "same-label"  // a request whose outside id another one has
	SmallAsk   Kind = "small-ask"   // no token at all, or no more than a page
	LargeAsk   Kind = "large-ask"   // longer than window or pools
	Deadline   Kind = "deadline"    // a request with little time
	Leave      Kind = "leave"       // a client goes away
	Fork       Kind = "fork"        // a further sample of a running request
	Drain      Kind = "drain"       // a side finishes what it has, ends and starts anew
	Mend       Kind = "mend"        // some of the standing faults end
	Heal       Kind = "heal"        // all faults end; from here on delivery is fair
	FewPages   Kind = "few-pages"   // a pool that holds one or two requests
	ManyPages  Kind = "many-pages"  // a pool of a million pages
	FewRecords Kind = "few-records" // one or two auxiliary slots

	OverVerbs   Kind = "over-verbs"   // links over RDMA verbs: nobody but the adapter checks a write
	OverWindows Kind = "over-windows" // the same, with a window for each lease
)

// Faults that must change nothing for anybody but, at most, the requests that they touch.
const (
	MessageLost      Kind = "message-lost"
	MessageDoubled   Kind = "message-doubled"
	MessageReordered Kind = "message-reordered"
	MessageHeld      Kind = "message-held"
	MessageReplayed  Kind = "message-replayed"
	Cut              Kind = "cut"
	DataCut          Kind = "data-cut"
	HalfOpen         Kind = "half-open"
	KillPrefill      Kind = "kill-prefill"
	KillDecode       Kind = "kill-decode"
	KillPrefillRank  Kind = "kill-prefill-rank"
	KillDecodeRank   Kind = "kill-decode-rank"
	Restart          Kind = "restart"
	Resize           Kind = "resize"
	PausePrefill     Kind = "pause-prefill"
	PauseDecode      Kind = "pause-decode"
	ClockDrift       Kind = "clock-drift"
	ClockLeap        Kind = "clock-leap"
	OpHeld           Kind = "op-held"
	WriteLost        Kind = "write-lost"
	RecordTorn       Kind = "record-torn"
	WriteDoubled     Kind = "write-doubled"
	WriteLate        Kind = "write-late"
	NoticeDoubled    Kind = "notice-doubled"
	PostFailed       Kind = "post-failed"
	BatchFailed      Kind = "batch-failed"
	NoticeFailed     Kind = "notice-failed"
	CopyFailed       Kind = "copy-failed"
	OpenFailed       Kind = "open-failed"
	FenceFailed      Kind = "fence-failed"
	ComputeFailed    Kind = "compute-failed"
	StepFailed       Kind = "step-failed"
	Mismatch         Kind = "mismatch"
)

// Faults of fabric and memory that break what the protocol builds on.
const (
	NoticeEarly Kind = "notice-early"
	FlipTag     Kind = "flip-tag"
	FlipSource  Kind = "flip-source"
	FlipWrite   Kind = "flip-write"
	TearWrite   Kind = "tear-write"
)

// KindInfo is what is said of a kind.
type KindInfo struct {
	Kind  Kind
	Class Class
	About string
	Cases string // public cases that it stands for
}

// Kinds is every kind that a run may count, in the order of docs/simulation.md.
func Kinds() []KindInfo {
	return []KindInfo{
		{Ask, Use, "a client asks", "B39 B49"},
		{Half, Use, "an outside router starts the prefill half first", "B02"},
		{AskHalf, Use, "and hands its name to decode: once, twice, to another node, or never", "B02 B33 B41"},
		{SameLabel, Use, "a request carries the outside id of another", "B33 B45"},
		{SmallAsk, Use, "a prompt of no token, of one, or of whole pages", "B48"},
		{LargeAsk, Use, "a prompt or an answer that fits neither window nor pools", "B06"},
		{Deadline, Use, "a request with little time left", "B26 B51"},
		{Leave, Use, "a client leaves, in whatever state its request is", "B01 B31 B41 B44"},
		{Fork, Use, "a further sample shares a running request's pages", "B12"},
		{Drain, Use, "a side finishes what it has, ends, and starts anew", "B34"},
		{Mend, Use, "some of the standing faults end, sides that are down start", "B34"},
		{Heal, Use, "every fault ends: what follows is judged for liveness", "B42"},
		{FewPages, Use, "a pool in which one request leaves no room for another", "B39 B49"},
		{ManyPages, Use, "a pool of a million pages", ""},
		{FewRecords, Use, "one or two auxiliary slots, reused at once", "B12 B52"},
		{OverVerbs, Use, "push links over RDMA verbs: queue pairs, flushed completions, writes that land after the local error, a fence in its steps", "B09 B26"},
		{OverWindows, Use, "the same with a memory window for each lease", "B36"},
		{MessageLost, Allowed, "a control message is lost", "B08 B42"},
		{MessageDoubled, Allowed, "a control message arrives twice", "B31 B33"},
		{MessageReordered, Allowed, "a control message overtakes one or two others", "B31"},
		{MessageHeld, Allowed, "a control message, and what is behind it, is held for up to 30 s", "B04 B08"},
		{MessageReplayed, Allowed, "an old message arrives once more, also one from before a restart, on whatever connection there is", "B02 B34 B36"},
		{Cut, Allowed, "two sides are parted; connections stand, nothing crosses", "B42"},
		{DataCut, Allowed, "every data path between two sides breaks, what is under way stays under way", "B09"},
		{HalfOpen, Allowed, "one end of a control connection is gone and the other does not hear of it", "B46"},
		{KillPrefill, Allowed, "a prefill side dies; what it launched may still land", "B16 B34 B42"},
		{KillDecode, Allowed, "a decode side dies", "B34"},
		{KillPrefillRank, Allowed, "one rank of a prefill side dies", "B46"},
		{KillDecodeRank, Allowed, "one rank of a decode side dies", "B46"},
		{Restart, Allowed, "a side starts again at the same address", "B34"},
		{Resize, Allowed, "a prefill side starts again with another pool", "B36"},
		{PausePrefill, Allowed, "a prefill side stands still; its network card does not", "B04 B25"},
		{PauseDecode, Allowed, "a decode side stands still", "B04 B18"},
		{ClockDrift, Allowed, "each process has a clock of its own, up to a fifth too fast or slow, hours apart", "B04 B16"},
		{ClockLeap, Allowed, "a process's clock leaps ahead by up to 100 s", "B04 B16 B18"},
		{OpHeld, Allowed, "an operation of the fabric stands still, wherever it is", "B01 B08 B25 B26"},
		{WriteLost, Allowed, "a write dies where it is, torn or not, and its stream with it", "B16"},
		{RecordTorn, Allowed, "the same, of an auxiliary record of which one half has landed", "B12 B16"},
		{WriteDoubled, Allowed, "a write lands twice, the second time whenever it likes", "B01"},
		{WriteLate, Allowed, "a write comes to its target after its source has died", "B01 B34"},
		{NoticeDoubled, Allowed, "a drain notice arrives twice", "B31"},
		{PostFailed, Allowed, "one write of a batch fails when it is posted", "B37 B46"},
		{BatchFailed, Allowed, "a batch is said to have failed while its writes are under way", "B10 B26"},
		{NoticeFailed, Allowed, "a notice is said to have failed and may have been sent", "B10"},
		{CopyFailed, Allowed, "a copy job fails half-way", "B10"},
		{OpenFailed, Allowed, "a data path does not open", "B54"},
		{FenceFailed, Allowed, "a fence cannot be done: the process ends, and is started anew", "B42"},
		{ComputeFailed, Allowed, "prefill's engine fails a chunk", "B46"},
		{StepFailed, Allowed, "decode's engine fails a step", "B10"},
		{Mismatch, Allowed, "a prefill side with another window, other pools or another name", "B29 B38 B54"},
		{NoticeEarly, Detected, "a notice overtakes the writes that it stands behind: completion before visibility", "B15"},
		{FlipTag, Detected, "a bit of a tag flips in decode's memory", ""},
		{FlipSource, Detected, "a bit of a sealed page flips in prefill's memory", ""},
		{FlipWrite, Detected, "a bit of a write flips on its way", ""},
		{TearWrite, Detected, "half of a write lands and it is tagged as whole", "B15 B16"},
	}
}
