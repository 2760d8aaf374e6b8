package fuzz

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
)

// FuzzConfig: whatever stands in a configuration file and on the command line, the start is refused with every problem named, or what is in
// force is valid, reads back from its own print, and is what every flag asked for.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("role: decode\nsizes: {window_tokens: 4096}\ndecode: {peers: [{name: p, addresses: ['127.0.0.1:1']}]}\n"), "--workers=3\n--log-level=debug", byte(0))
	f.Add([]byte("gateway: {listen: '0.0.0.0:80', plain: true}\n"), "--prefill-peer=a=h:1,h:2\n--allow-window-over-pool", byte(1))
	f.Add([]byte("timeouts: {liveness: 3s}\n---\nrole: all\n"), "--liveness=0s", byte(2))
	f.Add([]byte("role: &a all\nlog: {level: *a}\n"), "", byte(3))
	whole, err := config.Config{}.WithDefaults().YAML()
	require.NoError(f, err)
	f.Add(whole, "--model-seed=18446744073709551615\n--streams=2\n--tls-cert=c\n--tls-key=k\n--tls-ca=a", byte(0))
	path := filepath.Join(f.TempDir(), "kvfence.yaml")
	f.Fuzz(func(t *testing.T, file []byte, args string, how byte) {
		require.NoError(t, os.WriteFile(path, file, 0o600))
		scope := []config.Scope{config.Everything, config.GatewayAlone, config.OperatorClient}[how%3]
		fs := pflag.NewFlagSet("kvfence", pflag.ContinueOnError)
		fs.SetOutput(new(strings.Builder))
		flags := config.AddFlags(fs, scope)
		line := []string{"--config=" + path}
		for arg := range strings.SplitSeq(args, "\n") {
			// Another file than this one would be read from the machine; help ends the program.
			if strings.HasPrefix(arg, "--") && !strings.HasPrefix(arg, "--c") && !strings.HasPrefix(arg, "--help") && arg != "--" {
				line = append(line, arg)
			}
		}
		if fs.Parse(line) != nil {
			return // the flag package's own refusal
		}
		role := []config.Role{"", config.RoleDecode, config.RoleGateway}[how/3%3]
		c, err := flags.Load(role)
		if err != nil {
			require.ErrorIs(t, err, config.ErrConfig)
			require.NotEmpty(t, strings.TrimSpace(err.Error()))
			return
		}
		if role != "" {
			require.Equal(t, role, c.Role)
		}
		require.Equal(t, c, c.WithDefaults(), "defaults are all in")
		printed, err := c.YAML()
		require.NoError(t, err)
		again, err := config.Parse(printed)
		require.NoError(t, err, "what config print shows is a file:\n%s", printed)
		require.Equal(t, c, again.WithDefaults())
		if scope != config.OperatorClient {
			require.NoError(t, again.Validate())
			require.Equal(t, c.Exposed(), again.Exposed())
		}
	})
}
