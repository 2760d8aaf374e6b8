package plants

func verdicts() []Plant { return nil }
