package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"kvfence/impl/config"
	"kvfence/impl/gateway"
	"kvfence/impl/node"
)

func statusCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show pools, leases, links, fences and quarantine of a running node", Args: cobra.NoArgs,
		Long: "Show pools, leases, links, fences and quarantine of a running node. --operator says where its operator listener is; without it, the\n" +
			"default of --role: all 127.0.0.1:9090, prefill :9091, decode :9092, gateway :9093."}
	flags := config.AddFlags(cmd.Flags(), config.OperatorClient)
	asJSON := cmd.Flags().Bool("json", false, "print the node's JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := flags.Load("")
		if err != nil {
			return withCode(exitUsage, err)
		}
		return withCode(exitFailed, status(cmd.OutOrStdout(), cfg, *asJSON))
	}
	return cmd
}

// status asks the operator listener of a node.
func status(w io.Writer, cfg config.Config, asJSON bool) error {
	client, scheme, err := node.OperatorClient(cfg, 5*time.Second)
	if err != nil {
		return err
	}
	resp, err := client.Get(scheme + "://" + cfg.Operator.Listen + "/status")
	if err != nil {
		return fmt.Errorf("no node answers at operator.listen = %s: %w", cfg.Operator.Listen, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%s is no operator listener: it has no /status", cfg.Operator.Listen)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", cfg.Operator.Listen, resp.Status, body)
	}
	if asJSON {
		_, err = w.Write(body)
		return err
	}
	var s struct {
		Node    *node.Status
		Gateway *gateway.Status
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return fmt.Errorf("%s does not answer like a kvfence node: %w", cfg.Operator.Listen, err)
	}
	if s.Node == nil {
		return fmt.Errorf("%s does not answer like a kvfence node", cfg.Operator.Listen)
	}
	text := s.Node.Text()
	if s.Gateway != nil {
		text += "\n" + s.Gateway.Text()
	}
	_, err = io.WriteString(w, text)
	return err
}
