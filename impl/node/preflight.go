package node

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"kvfence/impl/config"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// ErrPreflight is wrapped when a pool cannot hold the window.
var ErrPreflight = errors.New("preflight")

// Preflight checks that every pool of this process holds the window. The incident began with one that did not: the window must
// fit, or the operator must say by name that it need not.
func Preflight(cfg config.Config) error {
	var list []error
	for _, p := range []struct {
		runs   bool
		name   string
		tokens uint32
	}{{cfg.RunsPrefill(), "prefill", cfg.Sizes.PrefillPool}, {cfg.RunsDecode(), "decode", cfg.Sizes.DecodePool}} {
		if p.runs {
			list = append(list, windowFits(cfg.Sizes.Window, cfg.Sizes.Page, p.name, p.tokens))
		}
	}
	return errors.Join(list...)
}

// windowFits is nil if the window fits a pool, of this node or a peer. What it advises is a whole number of pages.
func windowFits(window, page uint32, pool string, tokens uint32) error {
	if window <= tokens {
		return nil
	}
	return fmt.Errorf("%w: window %d tokens does not fit the %s pool of %d tokens: lower --window-tokens to %d, raise --pool-tokens (or --%s-pool-tokens) to %d, or start with --allow-window-over-pool",
		ErrPreflight, window, pool, tokens, tokens, pool, (window+page-1)/page*page)
}

// ledgerBytes is what the books of one page take beside its bytes and tags: ledger, lists of leases, grant tables.
const ledgerBytes = 100

// memoryFits compares what the pools of this process take with what there is. Without it a pool that is too large ends in the
// middle of the start, or later, when its pages are touched, by the kernel's hand and without a word.
func memoryFits(cfg config.Config, have uint64) error {
	m, err := newModel(cfg)
	if err != nil {
		return nil // said by the side that needs it
	}
	total, text := uint64(0), ""
	for _, side := range []struct {
		runs   bool
		name   string
		ranks  int
		split  string
		tokens uint32
	}{{cfg.RunsPrefill(), "prefill", cfg.Prefill.Ranks, cfg.Prefill.Split, cfg.Sizes.PrefillPool},
		{cfg.RunsDecode(), "decode", cfg.Decode.Ranks, cfg.Decode.Split, cfg.Sizes.DecodePool}} {
		if !side.runs {
			continue
		}
		ls, err := layouts(cfg, m, side.ranks, side.split, side.tokens)
		if err != nil {
			return nil // said by the side
		}
		n := poolBytes(ls)
		total += n
		text += fmt.Sprintf(", the %s pool of %d tokens %s", side.name, side.tokens, mebibytes(n))
	}
	if total <= have {
		return nil
	}
	return fmt.Errorf("%w: the pools take %s of memory and this process may have %s%s: lower --pool-tokens (or --prefill-pool-tokens, --decode-pool-tokens) or sizes.aux_slots",
		ErrPreflight, mebibytes(total), mebibytes(have), text)
}

// poolBytes is the memory of all pools of a side.
func poolBytes(side [][]spec.Layout) (n uint64) {
	for _, rank := range side {
		for _, l := range rank {
			n += uint64(l.Shape.Pages) * (uint64(l.Shape.PageBytes) + uint64(l.Shape.TagSlots)*spec.TagBytes + ledgerBytes)
		}
	}
	return n
}

func mebibytes(n uint64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// machineMemory is what this process can have at most: the machine's memory, or its control group's limit. All ones if unknown.
func machineMemory() uint64 {
	most := ^uint64(0)
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		most = uint64(si.Totalram) * uint64(si.Unit)
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil {
			most = min(most, n)
		}
	}
	return most
}

// congestion checks the name of a congestion control: with one that the kernel does not have no data stream would ever open.
func congestion(cfg config.Config) error {
	if cfg.Transport.Kind == "shm" || !cfg.RunsPrefill() && !cfg.RunsDecode() {
		return nil
	}
	if err := tcp.CheckCongestion(cfg.Transport.CongestionControl); err != nil {
		return fmt.Errorf("%w: transport.congestion_control: %w", config.ErrConfig, err)
	}
	return nil
}
