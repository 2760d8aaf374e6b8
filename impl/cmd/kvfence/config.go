package main

import (
	"errors"

	"github.com/spf13/cobra"

	"kvfence/impl/config"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the configuration", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	show := &cobra.Command{Use: "print", Short: "Print what is in force: file, flags over it, defaults", Args: cobra.NoArgs}
	flags := config.AddFlags(show.Flags(), config.Everything)
	show.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, problems := flags.Load("")
		b, err := cfg.YAML()
		if err == nil {
			_, err = cmd.OutOrStdout().Write(b)
		}
		return withCode(exitUsage, errors.Join(problems, err))
	}
	cmd.AddCommand(show)
	return cmd
}
