package plants

func freshness() []Plant { return nil }
