package a

import "testing"

func FuzzOne(f *testing.F) {}

func FuzzTwo(f *testing.F) {}

func Fuzzy() {}

func (x T) FuzzMethod(f *testing.F) {}

type T struct{}
