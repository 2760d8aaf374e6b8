package b

func FuzzNot(f int) {}
