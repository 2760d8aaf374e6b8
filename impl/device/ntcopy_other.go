//go:build !amd64

package device

// streams is plain copy only: no other architecture has been measured.
func streams() []stream { return []stream{{"copy", nil}} }

func pickStream() stream { return streams()[0] }

func misalign([]byte) int { return 0 }
