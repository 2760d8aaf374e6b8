package plants

func admission() []Plant { return nil }
