//go:build linux

package shm

import (
	"io"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openFiles is how many descriptors this process has.
func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// FuzzPacket: what arrives on the socket is one whole packet with its descriptors, or an error; every descriptor comes to the caller, who closes
// it, and none stays open.
func FuzzPacket(f *testing.F) {
	f.Add([]byte("one"), uint16(0))
	f.Add(make([]byte, packetMax), uint16(filesMax))
	f.Add(make([]byte, packetMax+1), uint16(1))
	f.Add([]byte{}, uint16(filesMax+1))
	room := (unix.CmsgSpace(4*filesMax) - unix.CmsgSpace(0)) / 4 // what the aligned buffer takes
	null, err := os.Open(os.DevNull)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, null.Close()) })
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(f, err)
	file := os.NewFile(uintptr(pair[0]), "packets")
	nc, err := net.FileConn(file)
	require.NoError(f, err)
	require.NoError(f, file.Close())
	c := nc.(*net.UnixConn)
	f.Cleanup(func() {
		require.NoError(f, c.Close())
		require.NoError(f, unix.Close(pair[1]))
	})
	f.Fuzz(func(t *testing.T, b []byte, files uint16) {
		b = b[:min(len(b), 2*packetMax)] // more does not fit into a socket's buffer
		var rights []byte
		n := int(files) % (2 * filesMax)
		if n > 0 && len(b) == 0 {
			b = []byte{0} // descriptors do not travel alone
		}
		if n > 0 {
			fds := make([]int, n)
			for i := range fds {
				fds[i] = int(null.Fd())
			}
			rights = unix.UnixRights(fds...)
		}
		before := openFiles(t)
		require.NoError(t, unix.Sendmsg(pair[1], b, rights, nil, 0))
		got, held, err := readPacket(c)
		require.LessOrEqual(t, len(held), room)
		switch {
		case len(b) == 0:
			require.ErrorIs(t, err, io.EOF)
		case len(b) > packetMax || n > room:
			require.Error(t, err)
		default:
			require.NoError(t, err)
			require.Equal(t, b, got)
			require.Len(t, held, n)
		}
		closeAll(held)
		require.LessOrEqual(t, openFiles(t), before, "a descriptor is left open") // fewer: something of before was collected
	})
}
