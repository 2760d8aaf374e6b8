package workload

// Recorded once; a change of any of them is a change of the models' revision.
var (
	golden = map[Kind]string{
		"transformer": " fzn t agwjl f tjmjlwevbwhon  r  ff  l h|length",
		"rolling":     " g s zbu  nkt  mxze cmu x  z jai   xeskj|length",
	}
	goldenSampled = map[Kind]string{
		"transformer": "  onhpzlp xt",
		"rolling":     " jxx",
	}
)
