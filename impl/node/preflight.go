package node

import (
	"errors"
	"fmt"

	"kvfence/impl/config"
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
