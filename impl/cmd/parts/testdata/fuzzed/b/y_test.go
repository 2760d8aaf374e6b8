package b

import "testing"

func FuzzThree(f *testing.F) {}
