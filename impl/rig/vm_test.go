package rig

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A kernel that is none, a job without an end and a machine past its limit are told apart from a job that failed.
func TestRun_MachineThatCannotBoot_IsRefusedAndGone(t *testing.T) {
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	dir := t.TempDir()
	bad := filepath.Join(dir, "vmlinuz")
	require.NoError(t, os.WriteFile(bad, []byte("no kernel"), 0o644))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := Machine{Kernel: bad, Initrd: bad}.Run(ctx, dir)
	require.ErrorIs(t, err, ErrRun)
}

func TestWriteJob_Arguments_AreQuoted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, WriteJob(dir, []Binary{{Name: "a.test", Args: []string{"-test.run", "A'B|$C"}, Env: []string{"X=1 2"}, Limit: time.Minute}}))
	b, err := os.ReadFile(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	require.Contains(t, string(b), `env 'X=1 2' timeout -k 5 60 /tmp/a.test '-test.run' 'A'\''B|$C' > a.test.out`)
	require.NoError(t, exec.Command("sh", "-n", filepath.Join(dir, "run.sh")).Run())
}
