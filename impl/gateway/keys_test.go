package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func fixedClock() time.Time { return time.Unix(1_800_000_000, 0) }

func TestParseKeys_GoodFile_KnowsTenantsAndShares(t *testing.T) {
	keys, err := ParseKeys([]byte("# comment\n\n ann:" + HashKey("k1") + "\nann:" + strings.ToUpper(HashKey("k2")) + "\r\nbob:" + HashKey("k3") + ":50\n"))
	require.NoError(t, err)
	require.Len(t, keys, 3)
	ids := map[identity]int{}
	for _, id := range keys {
		ids[id]++
	}
	require.Equal(t, map[identity]int{{"ann", 0}: 2, {"bob", 50}: 1}, ids)
}

func TestParseKeys_BadFile_NamesEveryLineAndNoKey(t *testing.T) {
	secret := "sk-this-is-a-bare-key"
	_, err := ParseKeys([]byte("ann:" + HashKey("k1") + "\n" + secret + "\nann:" + secret + "\n:" + HashKey("x") + "\nbob:" + HashKey("k1") +
		"\nann:" + HashKey("k4") + ":20\nbob:" + HashKey("k5") + ":0\nb b:" + HashKey("k6") + "\nbob:" + HashKey("k7") + ":1:2\n"))
	require.ErrorIs(t, err, ErrConfig)
	for _, line := range []string{"line 2", "line 3", "line 4", "line 5", "line 6", "line 7", "line 8", "line 9"} {
		require.ErrorContains(t, err, line)
	}
	require.NotContains(t, err.Error(), "line 1:")
	require.NotContains(t, err.Error(), secret)
	for _, empty := range []string{"", "# nothing\n"} {
		_, err = ParseKeys([]byte(empty))
		require.ErrorIs(t, err, ErrConfig)
	}
	_, err = ParseKeys(make([]byte, maxKeyFileBytes+1))
	require.ErrorIs(t, err, ErrConfig)
}

func TestKeyring_FileChanges_TakeEffectWithoutRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(s string) { require.NoError(t, os.WriteFile(path, []byte(s), 0o600)) }
	now := fixedClock()
	var reports []error
	write("ann:" + HashKey("a"))
	k, err := openKeys(path, time.Second, func() time.Time { return now }, func(err error) { reports = append(reports, err) })
	require.NoError(t, err)
	_, ok := k.lookup("a")
	require.True(t, ok)
	write("bob:" + HashKey("b"))
	_, ok = k.lookup("b")
	require.False(t, ok, "not before the interval is over")
	now = now.Add(time.Second)
	id, ok := k.lookup("b")
	require.True(t, ok)
	require.Equal(t, "bob", id.tenant)
	_, ok = k.lookup("a")
	require.False(t, ok, "a key that was taken out")
	require.Equal(t, []error{nil}, reports)

	write("garbage")
	for range 3 {
		now = now.Add(time.Second)
		_, ok = k.lookup("b")
		require.True(t, ok, "the last good keys stay")
	}
	require.Len(t, reports, 2, "one complaint a fault")
	require.ErrorIs(t, reports[1], ErrConfig)
	_, err = k.state()
	require.ErrorIs(t, err, ErrConfig)
	require.NoError(t, os.Remove(path))
	now = now.Add(time.Second)
	_, ok = k.lookup("b")
	require.True(t, ok)
	write("bob:" + HashKey("b"))
	now = now.Add(time.Second)
	n, err := k.state()
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestNew_BadKeysOrConfig_StopTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, []byte("ok:"+HashKey("x")+"\nbroken\n"), 0o600))
	_, err := New(Config{KeysFile: path}, testDeps(newFake(nil)))
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "line 2")
	_, err = New(Config{KeysFile: path + "x"}, testDeps(newFake(nil)))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = New(Config{}, Deps{})
	require.ErrorIs(t, err, ErrConfig)

	for _, c := range []Config{
		{Listen: "0.0.0.0:8080"}, {Listen: "x"}, {Listen: ":8080"}, {HeaderProxies: []string{"edge"}}, {HeaderProxies: []string{"*"}},
		{TenantHeader: "authorization"}, {TenantHeader: "a b"}, {SharePercent: 101}, {MaxActive: -1}, {RequestTimeout: -1}, {MaxChoices: 5000}, {DefaultMaxTokens: -1},
	} {
		require.ErrorIs(t, c.WithDefaults().Validate(false), ErrConfig, c)
	}
	require.NoError(t, Config{}.WithDefaults().Validate(false))
	require.NoError(t, Config{Listen: "0.0.0.0:1", KeysFile: "k"}.WithDefaults().Validate(true))
	require.NoError(t, Config{Listen: "10.1.1.1:1", KeysFile: "k", AllowPlain: true}.WithDefaults().Validate(false))
	err = Config{Listen: "0.0.0.0:1", MaxActive: -1, WriteTimeout: -1}.WithDefaults().Validate(false)
	var joined interface{ Unwrap() []error }
	require.True(t, errors.As(err, &joined))
	require.Len(t, joined.Unwrap(), 4, "all at once")
}

func FuzzKeysFile(f *testing.F) {
	f.Add([]byte("ann:" + HashKey("x") + ":50\n# c\n"))
	f.Add([]byte("a:b:c:d\n::\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := ParseKeys(data)
		if err != nil {
			require.ErrorIs(t, err, ErrConfig)
			return
		}
		require.NotEmpty(t, keys)
		for _, id := range keys {
			require.Regexp(t, tenantPattern, id.tenant)
		}
	})
}
