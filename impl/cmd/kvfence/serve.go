package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kvfence/impl/config"
	"kvfence/impl/node"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run a prefill node, a decode node and a gateway; or one role with --role",
		Args: cobra.NoArgs,
	}
	flags := config.AddFlags(cmd.Flags(), config.Everything)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return serve(flags, "") }
	return cmd
}

func gatewayCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "gateway", Short: "Run the HTTP gateway alone, before a decode node elsewhere", Args: cobra.NoArgs}
	flags := config.AddFlags(cmd.Flags(), config.GatewayAlone)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return serve(flags, config.RoleGateway) }
	return cmd
}

// serve runs a node until a signal, or until it stops itself.
func serve(flags *config.Flags, role config.Role) error {
	cfg, err := flags.Load(role)
	if err != nil {
		return withCode(exitUsage, err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	n, err := node.Start(cfg, newLog(os.Stderr, cfg.Log))
	if err != nil {
		return withCode(exitUsage, err)
	}
	announce(os.Stdout, cfg, n.Addresses())
	stopped := false
	select {
	case <-signals:
	case <-n.Stopped():
		stopped = true
	}
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "kvfence: second signal, ending at once")
		os.Exit(exitFailed)
	}()
	if !stopped {
		fmt.Fprintf(os.Stderr, "kvfence: draining, at most %v; a second Ctrl-C ends at once\n", cfg.Timeouts.Drain)
		ctx, cancel := context.WithTimeout(context.Background(), cfg.Timeouts.Drain)
		n.Drain(ctx)
		cancel()
	}
	err = n.Close()
	if why := n.Err(); why != nil {
		return withCode(exitStopped, why)
	}
	return withCode(exitFailed, err)
}

// announce says where the node listens, all of which is bound, and the commands that reach it as it is configured.
func announce(w io.Writer, cfg config.Config, a node.Addresses) {
	for _, l := range []struct{ name, addr string }{{"control links", a.Control}, {"internal API", a.API}, {"operator", a.Operator}, {"gateway", a.Gateway}} {
		if l.addr != "" {
			fmt.Fprintf(w, "%-14s %s\n", l.name, l.addr)
		}
	}
	if a.Gateway != "" {
		scheme := "http"
		if cfg.TLS.Enabled() && !cfg.Gateway.Plain {
			scheme = "https"
		}
		model := "" // a gateway alone serves what its decode node has
		if cfg.RunsDecode() {
			model = `"model":"kvfence-` + cfg.Model.Kind + `",`
		}
		proof := ""
		if scheme == "https" {
			proof += " --cacert " + cfg.TLS.CA
		}
		if cfg.Gateway.KeysFile != "" {
			proof += " -H \"Authorization: Bearer $KEY\""
		}
		fmt.Fprintf(w, "\ntry: curl%s %s://%s/v1/completions -H 'Content-Type: application/json' -d '{%s\"prompt\":\"Hello\",\"max_tokens\":16,\"temperature\":0}'\n",
			proof, scheme, a.Gateway, model)
	}
	proof := ""
	if cfg.TLS.Enabled() && !cfg.Operator.Plain && !config.Loopback(a.Operator) {
		proof = fmt.Sprintf(" --tls-cert %s --tls-key %s --tls-ca %s", cfg.TLS.Cert, cfg.TLS.Key, cfg.TLS.CA)
	}
	if cfg.Operator.Plain {
		proof = " --operator-plain"
	}
	fmt.Fprintf(w, "status: kvfence status --operator %s%s\n", a.Operator, proof)
}

// newLog writes text or JSON lines.
func newLog(w io.Writer, l config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // one of four words, validated
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			a.Value = slog.StringValue(a.Value.Time().UTC().Format(time.RFC3339Nano))
		}
		if a.Value.Kind() == slog.KindDuration { // the JSON handler would print nanoseconds without a unit
			a.Value = slog.StringValue(a.Value.Duration().Round(time.Microsecond).String())
		}
		return a
	}}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
