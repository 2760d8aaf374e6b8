package workload

// Recorded once; a change of any of them is a change of the models' revision.
var (
	golden = map[Kind]string{
		"transformer": "fxejxk  a tjalpt ll dljx   fonojjxXsl gw|length",
		"rolling":     " g s zbu  nkt  mxze cmu x  z jai   xeskj|length",
	}
	goldenSampled = map[Kind]string{
		"transformer": " vbxnx6et  n",
		"rolling":     " jxx",
	}
)
