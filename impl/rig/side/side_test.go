//go:build verbs && rig

package side

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport/verbs"
)

const (
	devicesVar = "KVFENCE_RDMA_DEVICES"
	roundsVar  = "KVFENCE_RDMA_BENCH_ROUNDS"
	// trialBytes is what each of them moves in one trial.
	trialBytes = 16 << 20
)

// mover is one of those that are compared; trial moves trialBytes in pieces of size and returns MiB a second.
type mover struct {
	name  string
	trial func(t *testing.T) float64
}

func TestThroughput_BesideOthers(t *testing.T) {
	device, _, _ := strings.Cut(os.Getenv(devicesVar), ",")
	if device == "" {
		t.Skip(devicesVar + " is not set (go run ./impl/cmd/rdma -bench sets it in its machine)")
	}
	rounds, err := strconv.Atoi(os.Getenv(roundsVar))
	if err != nil {
		rounds = 1
	}
	for _, size := range []int{64 << 10, 1 << 20} {
		leased, open := startOurs(t, device, size, verbs.LeasesAuto), startOurs(t, device, size, verbs.LeasesOff)
		movers := []mover{
			{"kvfence_leases", leased.trial},
			{"kvfence_one_key", open.trial},
			{"ib_write_bw", func(t *testing.T) float64 { return perftest(t, device, size) }},
			{"ucp_put_bw", func(t *testing.T) float64 { return ucx(t, device, size) }},
		}
		rates := map[string][]float64{}
		for round := range rounds {
			for i := range movers { // each round begins with another
				m := movers[(i+round)%len(movers)]
				rates[m.name] = append(rates[m.name], m.trial(t))
			}
		}
		for _, m := range movers {
			report(fmt.Sprintf("%s_%dKiB", m.name, size>>10), rates[m.name], "MiB/s", "%.1f")
		}
		for _, mine := range movers[:2] {
			for _, other := range movers[2:] {
				report(fmt.Sprintf("%s_of_%s_%dKiB", mine.name, other.name, size>>10), ratios(rates[mine.name], rates[other.name]), "ratio", "%.2f")
			}
		}
		leased.cost(t, size)
		by, why := leased.adapter.Leases()
		fmt.Printf("leases of %d KiB pages: %s (%s)\n", size>>10, by, why)
	}
}

func report(name string, values []float64, unit, format string) {
	s := slices.Sorted(slices.Values(values))
	for what, v := range map[string]float64{"min": s[0], "median": s[len(s)/2], "max": s[len(s)-1]} {
		fmt.Printf("figure: %s_%s "+format+" %s\n", name, what, v, unit)
	}
}

// ratios are taken within a round.
func ratios(a, b []float64) (out []float64) {
	for i := range a {
		out = append(out, a[i]/b[i])
	}
	return out
}

// TestMain lets this binary be the sending process of ours.
func TestMain(m *testing.M) {
	if os.Getenv(senderVar) == "" {
		os.Exit(m.Run())
	}
	if err := send(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sender:", err)
		os.Exit(1)
	}
}

func TestOthers_TheirLines_AreRead(t *testing.T) {
	rate, err := perftestRate(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      256              40.21              38.50\t\t   0.000616\n---\n")
	require.NoError(t, err)
	require.InDelta(t, 38.50, rate, 1e-9)
	rate, err = ucxRate("Final:                  1024      0.000  1640.921  1640.921       38.09      38.09         609         609\n")
	require.NoError(t, err)
	require.InDelta(t, 38.09, rate, 1e-9)
	for _, text := range []string{"", "Couldn't connect to 127.0.0.1", " 65536 256\n", "Final: 1 2"} {
		_, err = perftestRate(text)
		require.Error(t, err, text)
		_, err = ucxRate(text)
		require.Error(t, err, text)
	}
}
