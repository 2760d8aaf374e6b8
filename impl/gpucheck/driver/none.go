//go:build !cuda || !cgo || !linux

package driver

// Open refuses: see ErrNotBuilt.
func Open(string) (Card, error) { return nil, ErrNotBuilt }
