package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"kvfence/impl/transport/verbs"
	"kvfence/spec"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of the program and of the protocol", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

func versionText() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("kvfence %s  protocol %d  %s %s/%s  %s", version, spec.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, fabrics())
}

// fabrics are the transports of this build, with what is missing of one that it was built with.
func fabrics() string {
	switch err := verbs.Library(); {
	case err == nil:
		return "tcp, shm, verbs"
	case errors.Is(err, verbs.ErrNotBuilt):
		return "tcp, shm"
	default:
		return fmt.Sprintf("tcp, shm, verbs (%v)", err)
	}
}
