//go:build !verbs

package verbs

import (
	"context"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
)

// Library says whether this build can use libibverbs: it cannot.
func Library() error { return ErrNotBuilt }

// WindowsOf says what a device announces of memory windows; only the other build can ask it.
func WindowsOf(string) (string, error) { return "", ErrNotBuilt }

// Adapter stands for the rails of a build without verbs: there is none.
type Adapter struct{}

// Listener is what such an Adapter cannot make.
type Listener struct{}

// Open always fails with ErrNotBuilt, after the options' own errors.
func Open(opts Options, _ device.Memory) (*Adapter, error) {
	if _, err := opts.withDefaults(); err != nil {
		return nil, err
	}
	return nil, ErrNotBuilt
}

// Leases implements the Adapter of the other build.
func (*Adapter) Leases() (by Leases, why string) { return LeasesOff, ErrNotBuilt.Error() }

// Stats implements the Adapter of the other build.
func (*Adapter) Stats() Stats { return Stats{} }

// Close implements the Adapter of the other build.
func (*Adapter) Close() error { return nil }

// Listen implements the Adapter of the other build.
func (*Adapter) Listen(string) (*Listener, error) { return nil, ErrNotBuilt }

// Dial implements the Adapter of the other build.
func (*Adapter) Dial(context.Context, string, transport.LinkInfo, *transport.Grants, transport.TargetSink, tcp.Options) (transport.Target, error) {
	return nil, ErrNotBuilt
}

// Expect implements the Listener of the other build.
func (*Listener) Expect(transport.LinkInfo, transport.SourceSink) (transport.Source, error) {
	return nil, ErrNotBuilt
}

// Addr implements the Listener of the other build.
func (*Listener) Addr() string { return "" }

// Denied implements the Listener of the other build.
func (*Listener) Denied() uint64 { return 0 }

// Close implements the Listener of the other build.
func (*Listener) Close() error { return nil }
