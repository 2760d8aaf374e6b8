package transport

import (
	"kvfence/impl/device"
	"kvfence/spec"
)

// Copy is one part of one page to be pulled.
type Copy struct {
	Component spec.Component
	Part      spec.PartIndex
	Index     uint32
	Src       spec.SourcePage
	SrcSlot   spec.PartIndex // slot of the part's tag in the source page
	SrcSegs   []spec.Segment
	Head      device.DigestHeader // what the digest covers beside the bytes (device.HeaderOf); used with CopyJob.Digests only
	SrcTag    spec.Tag            // what the manifest says the source's tag must be, compared after the copy
	Dst       spec.GrantedPage
	DstSegs   []spec.Segment
	DstTag    spec.Tag // written by the reader after the bytes, if the source tag still agreed
}

// CopyJob is a set of copies of one lease. ID is the caller's, unique within the link's epoch.
type CopyJob struct {
	ID      uint64
	Lease   spec.LeaseID
	Digests bool // hash what was copied and compare with SrcTag.Digest
	Copies  []Copy
}

// CopyResult is the outcome of a job: Bad is empty when every source tag and digest agreed after its copy.
type CopyResult struct {
	Job   uint64
	Lease spec.LeaseID
	Bad   []BadCopy
	Err   error // the job did not run to its end (fenced, source gone); its copies have stopped all the same
}

// BadCopy names one copy whose source did not agree.
type BadCopy struct {
	Component spec.Component
	Part      spec.PartIndex
	Index     uint32
	State     spec.TagState // of the source tag
	Digest    bool          // the bytes' digest differs
}

// Reader is decode's end of a pull link in one epoch.
type Reader interface {
	// Copy queues a job; it ends in exactly one ReaderSink.Copied, after which no copy of it is running.
	Copy(j CopyJob)
	// Fence stops: queued jobs end with ErrFenced, running copies stop at a page border; then ReaderSink.Fenced.
	Fence()
}

// ReaderSink receives what happened at the reader.
type ReaderSink interface {
	Copied(r CopyResult)
	Lost(err error)
	Fenced()
}

// ExporterSink receives what happened at the owner of an exported pool.
type ExporterSink interface {
	// Opened reports that the reader has mapped the pool and both nonces were seen.
	Opened()
	// ReaderEnded reports that the reader's process has ended (pidfd): nothing of it reads the pool any more.
	ReaderEnded()
	Lost(err error)
}
