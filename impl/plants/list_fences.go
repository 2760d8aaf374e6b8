package plants

func fences() []Plant { return nil }
