//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A process that is out of descriptors for a moment goes on to take readers afterwards.
func TestExporter_OutOfDescriptors_TakesReadersAgain(t *testing.T) {
	g := newRig(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}))
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: g.e.Address()})
	refused := <-g.refused
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	require.NoError(t, err)
	require.ErrorIs(t, refused, unix.EMFILE)
	require.NoError(t, unix.Close(fd))
	for len(g.refused) > 0 {
		<-g.refused
	}
	g.dial(g.config(newReaderSink()))
}
