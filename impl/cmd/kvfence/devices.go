package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kvfence/impl/device/gpu"
	"kvfence/impl/transport/verbs"
)

func devicesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "devices", Short: "Show RDMA devices and GPUs, the addresses they would use and how near they are", Args: cobra.NoArgs,
		Long: "Show RDMA devices: ports and their state, tables of addresses (GIDs) with the one that gid_index auto takes and why, NUMA node, distance\n" +
			"to each GPU, and the rails that transport.kind verbs would use; this is read from the kernel: any build can do it. Show NVIDIA GPUs: memory, health, peers and the RDMA\n" +
			"devices nearest to each; this needs kvfence-native and NVIDIA's driver."}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	root := cmd.Flags().String("sysfs", "/sys", "where the kernel shows devices")
	near := cmd.Flags().String("near", "", "order the rails by nearness to this GPU's PCI address, or to numa:N")
	most := cmd.Flags().Int("max-rails", 4, "how many rails")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := reportDevices(*root, *near, *most)
		if err != nil {
			return withCode(exitUsage, err)
		}
		if *asJSON {
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return withCode(exitFailed, e.Encode(r))
		}
		return withCode(exitFailed, r.print(cmd.OutOrStdout()))
	}
	return cmd
}

// deviceReport is what devices prints.
type deviceReport struct {
	Library string            `json:"libibverbs"`
	Memlock string            `json:"memlock"`
	Devices []verbs.Device    `json:"devices"`
	Windows map[string]string `json:"memory_windows"` // by device
	Rails   []railReport      `json:"rails"`
	NoRails string            `json:"no_rails,omitempty"` // why there are none
	GPUs    gpuReport         `json:"gpus"`
}

type railReport struct {
	Device string `json:"device"`
	Port   uint8  `json:"port"`
	Why    string `json:"why"`
}

func reportDevices(root, near string, most int) (r deviceReport, err error) {
	if most < 1 || most > verbs.MaxRails {
		return r, fmt.Errorf("--max-rails %d: it must lie between 1 and %d", most, verbs.MaxRails)
	}
	r = deviceReport{Library: "can be used", Memlock: "unlimited", Devices: verbs.Devices(root), Windows: map[string]string{}}
	if err := verbs.Library(); err != nil {
		r.Library = err.Error()
	}
	if n, limited := verbs.Memlock(); limited {
		r.Memlock = fmt.Sprintf("%d bytes", n)
	}
	for _, d := range r.Devices {
		text, err := verbs.WindowsOf(d.Name)
		if err != nil {
			text = "unknown: " + err.Error()
		}
		r.Windows[d.Name] = text
	}
	rails, err := verbs.ChooseRails(root, near, most)
	if errors.Is(err, verbs.ErrNear) {
		return r, err
	}
	if err != nil {
		r.NoRails = err.Error()
	}
	for _, c := range rails {
		r.Rails = append(r.Rails, railReport{c.Device, c.Port, c.Why})
	}
	r.GPUs = reportGPUs(gpu.Describe(root), r.Devices)
	return r, nil
}

func (r deviceReport) print(w io.Writer) (err error) {
	p := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	p("libibverbs    %s\nmemlock       %s\n", r.Library, r.Memlock)
	for _, d := range r.Devices {
		p("\n%s", d.Name)
		if d.PCI != "" {
			p("  PCI %s", d.PCI)
		}
		if d.NUMA >= 0 {
			p("  NUMA node %d", d.NUMA)
		}
		if d.Netdev != "" {
			p("  interface %s", d.Netdev)
		}
		p("\n  memory windows: %s\n", r.Windows[d.Name])
		for _, g := range d.GPUs {
			p("  GPU %s: %s\n", g.PCI, g.Distance)
		}
		for _, port := range d.Ports {
			p("  port %d  %s  %s  %s\n", port.Number, port.State, port.Layer, port.Rate)
			for _, g := range port.GIDs {
				mark := " "
				if g.Index == port.Chosen {
					mark = "*"
				}
				p("   %s GID %-3d %-14s %s\n", mark, g.Index, g.Type, g.Text)
			}
			p("     %s\n", port.Why)
		}
	}
	if r.NoRails != "" {
		p("\nrails         none: %s\n", r.NoRails)
	}
	for i, c := range r.Rails {
		p("\nrail %d        %s port %d: %s", i, c.Device, c.Port, c.Why)
	}
	p("\n")
	r.GPUs.print(p)
	return err
}
