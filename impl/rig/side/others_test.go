//go:build verbs && rig

package side

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// perftest runs ib_write_bw, between two processes, on the device's RoCE v2 address.
func perftest(t *testing.T, device string, size int) float64 {
	args := []string{"-d", device, "-x", "1", "-m", "4096", "-s", strconv.Itoa(size), "-n", strconv.Itoa(trialBytes / size), "-F"}
	rate, err := perftestRate(pair(t, nil, "ib_write_bw", args, args))
	require.NoError(t, err)
	return rate
}

// perftestRate is the average that ib_write_bw prints: MB/sec are MiB a second there.
func perftestRate(text string) (float64, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 5 {
			if _, err := strconv.Atoi(f[0]); err == nil {
				return strconv.ParseFloat(f[3], 64)
			}
		}
	}
	return 0, fmt.Errorf("ib_write_bw gave no rate: %q", text)
}

// ucxVars are what UCX needs to work on soft RoCE; with its default of retries a peer that is gone is never noticed.
func ucxVars(device string) []string {
	return []string{"UCX_WARN_UNUSED_ENV_VARS=n", "UCX_NET_DEVICES=" + device + ":1", "UCX_TLS=rc_verbs,ud_verbs", "UCX_IB_GID_INDEX=1", "UCX_UD_VERBS_ETH_DGID_CHECK=n",
		"UCX_RC_VERBS_RETRY_COUNT=4", "UCX_RC_VERBS_TIMEOUT=100ms"}
}

// ucx runs ucp_put_bw over queue pairs of its own.
func ucx(t *testing.T, device string, size int) float64 {
	rate, err := ucxRate(pair(t, ucxVars(device), "ucx_perftest", nil, []string{"-t", "ucp_put_bw", "-s", strconv.Itoa(size), "-n", strconv.Itoa(trialBytes / size), "-w", "5"}))
	require.NoError(t, err)
	return rate
}

// ucxRate is the overall bandwidth in ucx_perftest's last line, MiB a second.
func ucxRate(text string) (float64, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 7 && f[0] == "Final:" {
			return strconv.ParseFloat(f[6], 64)
		}
	}
	return 0, fmt.Errorf("ucx_perftest gave no rate: %q", text)
}

// pair runs a program as server and as client, and returns what the client said. The client is tried until the server listens.
func pair(t *testing.T, vars []string, name string, serverArgs, clientArgs []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var complaint bytes.Buffer
	server := exec.CommandContext(ctx, name, serverArgs...)
	server.Env = append(os.Environ(), vars...)
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	server.Stdout, server.Stderr = &complaint, &complaint
	require.NoError(t, server.Start())
	for {
		client := exec.CommandContext(ctx, name, append([]string{"127.0.0.1"}, clientArgs...)...)
		client.Env = server.Env
		out, err := client.CombinedOutput()
		if err == nil {
			require.NoError(t, server.Wait(), "%s: %s", name, complaint.String())
			return string(out)
		}
		if ctx.Err() != nil {
			_ = server.Wait()
			t.Fatalf("%s: %v: %s; server: %s", name, err, out, complaint.String())
		}
	}
}
