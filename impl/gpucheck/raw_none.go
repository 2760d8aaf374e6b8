//go:build !cuda || !cgo || !linux

package gpucheck

import "kvfence/impl/device/cuda/driver"

// openRaw refuses as the driver does.
func openRaw(library string) (raw, error) {
	_, err := driver.Open(library)
	return nil, err
}
