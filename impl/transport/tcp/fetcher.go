package tcp

import (
	"errors"
	"fmt"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// fetcher reads parts of pages that the host cannot address into the staging memory of two lanes in turn, so that one is fetched while the other is sent.
// One goroutine.
type fetcher struct {
	lanes [2]device.Lane
}

func newFetcher(p *device.Pool) (*fetcher, error) {
	f := &fetcher{}
	for i := range f.lanes {
		var err error
		if f.lanes[i], err = p.Store.Lane(max(laneBytes, int(p.Layout.Shape.PageBytes)+device.StageAlign)); err != nil {
			return nil, errors.Join(fmt.Errorf("staging memory of %s: %w", p.Layout.Component, err), f.close())
		}
	}
	return f, nil
}

func (f *fetcher) close() (err error) {
	for _, l := range f.lanes {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// fetch begins to fetch as many of the writes as fit into a lane, at least one.
func (f *fetcher) fetch(lane int, ws []transport.Write) ([]device.Staged, error) {
	var items []device.Staged
	at, room := 0, len(f.lanes[lane].Staging())
	for i := range ws {
		n := int(spec.UsedBytes(ws[i].SrcSegs))
		if at+n > room {
			break
		}
		items = append(items, device.Staged{PagePart: device.PagePart{Part: ws[i].Of, Index: ws[i].Index, Page: ws[i].Src}, At: at})
		at += (n + device.StageAlign - 1) &^ (device.StageAlign - 1)
	}
	return items, f.lanes[lane].Fetch(items)
}

// fetched sends the bytes of the writes at the start of ws that are of this pool, and returns how many those are.
func (s *sender) fetched(ws []transport.Write, p *device.Pool) (n int, err error) {
	c := ws[0].Component
	for n < len(ws) && ws[n].Component == c {
		n++
	}
	f := s.fetchers[c]
	if f == nil {
		if f, err = newFetcher(p); err != nil {
			return 0, err
		}
		s.fetchers[c] = f
	}
	lane, sent := 0, 0
	items, err := f.fetch(lane, ws[:n])
	for err == nil && sent < n {
		if err = f.await(lane); err != nil {
			break
		}
		now, staging := items, f.lanes[lane].Staging()
		lane = 1 - lane
		if items = nil; sent+len(now) < n {
			if items, err = f.fetch(lane, ws[sent+len(now):n]); err != nil {
				break
			}
		}
		for i := range now {
			if err := s.add(staging[now[i].At:][:spec.UsedBytes(ws[sent+i].SrcSegs)]); err != nil {
				return 0, s.awaitFetch(f, lane, items, err)
			}
		}
		if err := s.flush(); err != nil { // the staging memory is used again
			return 0, s.awaitFetch(f, lane, items, err)
		}
		sent += len(now)
	}
	return n, err
}

// awaitFetch ends what is being fetched when a stream is lost: no page is read when its sender has ended.
func (s *sender) awaitFetch(f *fetcher, lane int, items []device.Staged, err error) error {
	if len(items) > 0 {
		err = errors.Join(err, f.await(lane))
	}
	return err
}

// await ends a fetch. One that cannot be waited for may read at any time: the device counts as lost.
func (f *fetcher) await(lane int) error {
	_, err := f.lanes[lane].Wait()
	if err == nil || errors.Is(err, device.ErrLost) {
		return err
	}
	if _, again := f.lanes[lane].Wait(); again != nil && !errors.Is(again, device.ErrLost) {
		return fmt.Errorf("%w: a fetch has no known end: %w", device.ErrLost, again)
	} else if again != nil {
		return again
	}
	return err // it is over, and nothing is known of what it fetched
}

func (s *sender) closeFetchers() {
	for _, f := range s.fetchers {
		if f != nil {
			_ = f.close() // nothing is being fetched, or the device is lost
		}
	}
}
