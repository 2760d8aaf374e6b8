package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDevices_OneCard_IsShownWithItsRail(t *testing.T) {
	root := t.TempDir()
	port := filepath.Join(root, "class", "infiniband", "rxe0", "ports", "1")
	for path, content := range map[string]string{
		"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "2.5 Gb/sec (1X SDR)",
		"gids/0": "0000:0000:0000:0000:0000:ffff:0a63:0001", "gid_attrs/types/0": "RoCE v2",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(port, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(port, path), []byte(content+"\n"), 0o644))
	}
	r, err := reportDevices(root, "", 4)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, r.print(&out))
	for _, want := range []string{"rxe0", "port 1  ACTIVE  Ethernet", "* GID 0", "10.99.0.1", "RoCE v2 IPv4", "rail 0        rxe0 port 1"} {
		require.Contains(t, out.String(), want)
	}
	b, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(b), `"chosen_gid":0`)
}

func TestDevices_NoneAndBadFlags(t *testing.T) {
	r, err := reportDevices(t.TempDir(), "", 4)
	require.NoError(t, err)
	require.Contains(t, r.NoRails, "no device is there")
	_, err = reportDevices(t.TempDir(), "gpu0", 4)
	require.ErrorContains(t, err, "neither a PCI address nor numa:N")
	_, err = reportDevices(t.TempDir(), "", 0)
	require.Error(t, err)
}
