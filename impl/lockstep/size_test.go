package lockstep

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for _, set := range Pinned() {
		t.Run(set.Name, func(t *testing.T) {
			full, err := set.fill()
			if err != nil {
				t.Fatal(err)
			}
			g := NewGraph(&full)
			at := time.Now()
			err = g.Explore(1500000)
			t.Logf("%v %d states, %d edges, taken %v, cut %v, %v", err, len(g.Nodes), g.Edges(), g.Taken, g.Cut, time.Since(at))
			if os.Getenv("SHARE") != "" {
				r, err := ReplaySetting(set, share())
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d of %d different %v", r.Different, r.Replayed, time.Since(at))
				for _, d := range r.Differences {
					t.Log(d)
				}
			}
		})
	}
}

func share() int {
	n := 50
	fmt.Sscan(os.Getenv("SHARE"), &n)
	return n
}
