package gateway

import (
	"context"
	"sync"
	"time"

	"kvfence/impl/node/api"
)

const (
	infoFresh   = time.Second
	infoTimeout = 2 * time.Second
)

// infoCache keeps what the node last said about itself. Safe for concurrent use.
type infoCache struct {
	backend api.Backend
	now     func() time.Time

	fetching sync.Mutex // one question at a time
	mu       sync.Mutex
	known    bool
	info     api.Info
	err      error // of the last question
	asked    time.Time
}

func (c *infoCache) read() (info api.Info, known, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info, c.known, !c.asked.IsZero() && c.now().Sub(c.asked) < infoFresh, c.err
}

// get returns the node's info. current says that an old answer will not do if the
// node does not answer now (readiness); otherwise the last one is good enough, since
// the node itself judges every request.
func (c *infoCache) get(ctx context.Context, current bool) (api.Info, error) {
	info, known, fresh, err := c.read()
	if !fresh {
		if known && !current {
			if c.fetching.TryLock() {
				c.fetch(ctx)
				c.fetching.Unlock()
			}
		} else {
			c.fetching.Lock()
			if _, _, fresh, _ := c.read(); !fresh {
				c.fetch(ctx)
			}
			c.fetching.Unlock()
		}
		info, known, _, err = c.read()
	}
	if known && !current {
		return info, nil
	}
	return info, err
}

// fetch asks the node. Called with fetching held. A caller that leaves must not make
// the node look lost to the others, so its context only lends its values.
func (c *infoCache) fetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), infoTimeout)
	defer cancel()
	info, err := c.backend.Info(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.err = c.now(), err
	if err == nil {
		c.info, c.known = info, true
	}
}
