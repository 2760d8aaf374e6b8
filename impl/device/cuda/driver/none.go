//go:build !cuda || !cgo || !linux

package driver

// Driver is none without the tag cuda.
type Driver struct{}

// Open refuses: see ErrNotBuilt.
func Open(string) (*Driver, error) { return nil, ErrNotBuilt }
