package spec

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// registered finds the names under which a file registers metrics.
func registered(t *testing.T, file, prefix string, names map[string]bool) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?:counter|gauge|histogram|name)\("([a-z_]+)"|Name: "kvfence_([a-z_]+)"`).FindAllSubmatch(text, -1) {
		if len(m[2]) > 0 {
			names["kvfence_"+string(m[2])] = true
		} else {
			names[prefix+string(m[1])] = true
		}
	}
}

func TestMetrics_Document_HasEachMetricAndNoOther(t *testing.T) {
	names := map[string]bool{}
	registered(t, "../impl/node/metrics.go", "kvfence_", names)
	registered(t, "../impl/gateway/metrics.go", "kvfence_gateway_", names)
	rows := docRows(t, "metrics.md", "kvfence_")
	for _, r := range rows {
		require.True(t, names[r[0]], "%s is registered nowhere", r[0])
		delete(names, r[0])
	}
	require.NotEmpty(t, rows)
	require.Empty(t, names, "these stand in no table")
}
