package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func load(t *testing.T, role Role, file string, args ...string) (Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := AddFlags(fs, Everything)
	if file != "" {
		path := filepath.Join(t.TempDir(), "kvfence.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		args = append([]string{"--config", path}, args...)
	}
	require.NoError(t, fs.Parse(args))
	return f.Load(role)
}

func TestLoad_Nothing_IsAllOnLoopback(t *testing.T) {
	c, err := load(t, "", "")
	require.NoError(t, err)
	require.Equal(t, RoleAll, c.Role)
	require.Equal(t, "127.0.0.1:8080", c.Gateway.Listen)
	require.Equal(t, "127.0.0.1:9090", c.Operator.Listen)
	require.Equal(t, uint32(4096), c.Sizes.Window)
	require.Equal(t, uint32(8192), c.Sizes.PrefillPool)
	require.Equal(t, uint32(8192), c.Sizes.DecodePool)
	require.Equal(t, uint32(16), c.Sizes.Page)
	require.True(t, c.Guards.PageDigests.Enabled())
	require.True(t, c.Guards.StepTagCheck.Enabled())
	require.Empty(t, c.Exposed())
}

func TestLoad_FileAndFlags_FlagsWin(t *testing.T) {
	c, err := load(t, "", `
role: decode
decode:
  peers:
    - {name: p, addresses: ["127.0.0.1:1"]}
sizes: {window_tokens: 128, pool_tokens: 256}
timeouts: {liveness: 2s}
`, "--window-tokens", "64", "--decode-pool-tokens=512", "--prefill-peer", "q=127.0.0.1:2,127.0.0.1:3", "--page-digests=off")
	require.NoError(t, err)
	require.Equal(t, uint32(64), c.Sizes.Window)
	require.Equal(t, uint32(256), c.Sizes.PrefillPool)
	require.Equal(t, uint32(512), c.Sizes.DecodePool)
	require.Equal(t, 2*time.Second, c.Timeouts.Liveness)
	require.Equal(t, []Peer{{Name: "q", Addresses: []string{"127.0.0.1:2", "127.0.0.1:3"}}}, c.Decode.Peers)
	require.False(t, c.Guards.PageDigests.Enabled())
}

func TestLoad_ManyProblems_AreAllReported(t *testing.T) {
	_, err := load(t, "", "role: decode\nsizes: {page_tokens: 16, pool_tokens: 100}\ntransport: {kind: pigeon}\n",
		"--workers", "many", "--window-tokens=1", "--liveness", "soon", "--tls-cert", "x")
	require.ErrorIs(t, err, ErrConfig)
	for _, want := range []string{
		`--workers "many"`, "sizes.window_tokens is 1", "the decode pool of 100 tokens", `"pigeon"; known are tcp, shm`, `--liveness "soon"`, "all three or none",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestLoad_BadFile_NamesTheKey(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"unknown key":   {"sizes: {window: 3}", "line 1: no key \"window\" in sizes"},
		"at the top":    {"\nroles: all", "line 2: no key \"roles\" at the top"},
		"two documents": {"role: all\n---\nrole: all\n", "more than one document"},
		"not yaml":      {"role: [", "line 1"},
		"wrong type":    {"sizes: {window_tokens: many}", "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, "", c.file)
			require.ErrorIs(t, err, ErrConfig)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := load(t, "", "", "--config", filepath.Join(t.TempDir(), "absent.yaml"))
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "absent.yaml")
}

func TestValidate_NotLoopbackWithoutCertificates_SaysWhatToSet(t *testing.T) {
	for name, c := range map[string]struct {
		role Role
		args []string
		want string
	}{
		"control": {RolePrefill, []string{"--control", "0.0.0.0:7070"}, "prefill.control"},
		"data":    {RolePrefill, []string{"--data", "10.0.0.1:7071"}, "prefill.data"},
		"peer":    {RoleDecode, []string{"--prefill-peer", "10.0.0.1:7070"}, "decode.peers[0]"},
		"api":     {RoleDecode, []string{"--api", "[::]:7080"}, "decode.api"},
		"gateway": {RoleAll, []string{"--gateway", ":8080"}, "gateway.listen"},
		"name":    {RoleDecode, []string{"--api", "decode.example:7080"}, "decode.api"},
		"up":      {RoleGateway, []string{"--upstream", "http://10.1.1.1:7080"}, "gateway.upstream"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.role, "", c.args...)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "--tls-cert")
			_, err = load(t, c.role, "", append(c.args, "--tls-cert=a", "--tls-key=b", "--tls-ca=c")...)
			require.NoError(t, err)
		})
	}
	_, err := load(t, RoleGateway, "", "--gateway", ":8080", "--gateway-plain")
	require.NoError(t, err)
}

func TestValidate_OwnPeersInRoleAll_IsAContradiction(t *testing.T) {
	_, err := load(t, "", "", "--prefill-peer", "127.0.0.1:7070")
	require.ErrorContains(t, err, "role all serves its own prefill side")
}

func TestValidate_RollingOverSeveralRanks_IsRefused(t *testing.T) {
	_, err := load(t, "", "", "--model", "rolling", "--decode-ranks", "2")
	require.ErrorContains(t, err, "cannot be divided")
}

func TestWithDefaults_DoesNotChangeItsReceiver(t *testing.T) {
	var c Config
	filled := c.WithDefaults()
	require.Equal(t, Config{}, c)
	require.Equal(t, filled, filled.WithDefaults())
}

func TestYAML_PrintedConfiguration_ReadsBackEqual(t *testing.T) {
	c, err := load(t, "", "", "--role=decode", "--prefill-peer", "a=127.0.0.1:1", "--liveness=3s")
	require.NoError(t, err)
	b, err := c.YAML()
	require.NoError(t, err)
	require.NotContains(t, strings.ToLower(string(b)), "hint")
	again, err := Parse(b)
	require.NoError(t, err)
	require.Equal(t, c, again)
}

func TestAddFlags_Scopes_HaveTheirFlagsOnly(t *testing.T) {
	names := func(s Scope) (out []string) {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		AddFlags(fs, s)
		fs.VisitAll(func(f *pflag.Flag) { out = append(out, f.Name) })
		return out
	}
	require.Len(t, names(Everything), len(options())+1)
	require.Equal(t, []string{"config", "operator", "operator-plain", "role", "tls-ca", "tls-cert", "tls-key"}, names(OperatorClient))
	require.Equal(t, []string{"config", "drain-timeout", "gateway", "gateway-plain", "header-proxy", "keys-file", "log-format", "log-level", "operator",
		"operator-plain", "request-timeout", "tls-ca", "tls-cert", "tls-key", "upstream", "upstream-as", "window-tokens"}, names(GatewayAlone))
}

// The example of the operator's page is taken as it stands there, by each role.
func TestLoad_ExampleOfTheDocumentation_IsAccepted(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	example, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	for _, role := range []Role{RolePrefill, RoleDecode, RoleGateway} {
		c, err := load(t, role, example, "--tls-cert=a", "--tls-key=b", "--tls-ca=c")
		require.NoError(t, err, role)
		require.Equal(t, uint32(16384), c.Sizes.DecodePool)
		_, err = load(t, role, example)
		require.ErrorContains(t, err, "tls.cert", "%s: it is not on loopback", role)
	}
}

// What somebody writes down is in force, or the start says that it is not: zero means "not given" inside, and nobody may be told
// that he has what he has not.
func TestLoad_ZeroOrEmptyWritten_IsRefusedNotReplaced(t *testing.T) {
	for _, flag := range []string{"--workers=0", "--streams=0", "--prefill-ranks=0", "--decode-ranks=0", "--drain-timeout=0s", "--liveness=0s", "--gateway=", "--operator=",
		"--prefill-name=", "--log-level=", "--page-digests=", "--model=", "--control="} {
		_, err := load(t, "", "", flag)
		require.ErrorIs(t, err, ErrConfig, flag)
		name, _, _ := strings.Cut(flag, "=")
		require.ErrorContains(t, err, name+" ")
	}
	for file, want := range map[string]string{
		"decode: {workers: 0}":          `decode.workers "0"`,
		"timeouts: {drain: 0s}":         `timeouts.drain "0s"`,
		"gateway: {listen: ''}":         `gateway.listen ""`,
		"sizes: {pool_tokens: 0}":       `sizes.pool_tokens "0"`,
		"guards: {page_digests: ''}":    `guards.page_digests ""`,
		"role: ''\nlog: {level: debug}": `role ""`,
	} {
		_, err := load(t, "", file)
		require.ErrorIs(t, err, ErrConfig, file)
		require.ErrorContains(t, err, want)
	}
	_, err := load(t, "", "", "--model-seed=0", "--plain-data=false", "--keys-file=", "--workers=0", "--workers=3")
	require.NoError(t, err, "these are values, and the last of a flag counts")
	c, err := Config{}.WithDefaults().YAML()
	require.NoError(t, err)
	for _, role := range []Role{"", RolePrefill, RoleDecode, RoleGateway} {
		_, err = load(t, role, string(c))
		require.NoError(t, err, "what config print shows is a file")
	}
}

// A client of the operator listener may be given the deployment's file: only what it uses is judged.
func TestLoad_OperatorClient_TakesADeploymentsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kvfence.yaml")
	require.NoError(t, os.WriteFile(path, []byte("prefill: {control: 10.0.0.1:7070, decodes: [d]}\ndecode:\n  peers:\n    - {name: p, addresses: [\"10.0.0.1:7070\"]}\n"), 0o600))
	client := func(args ...string) (Config, error) {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		f := AddFlags(fs, OperatorClient)
		require.NoError(t, fs.Parse(append([]string{"-c", path}, args...)))
		return f.Load("")
	}
	for _, role := range []string{"all", "prefill", "decode", "gateway"} {
		_, err := client("--role", role)
		require.NoError(t, err, role)
	}
	for want, args := range map[string][]string{
		"is not loopback": {"--operator", "10.0.0.1:9091"}, "host:port": {"--operator", "x"}, "known are": {"--role", "x"}, "all three or none": {"--tls-ca", "x"},
	} {
		_, err := client(args...)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "prefill.control")
	}
}
