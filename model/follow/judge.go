package follow

// judge looks at the properties of the specification on what the line changed.
func (f *Follower) judge() { f.s.touched = f.s.touched[:0] }
