package core

import (
	"fmt"
	"os"
)

// trace prints every step of the world when KVFENCE_TRACE is set.
func (w *world) trace(who string, ev any, acts []Action) {
	if os.Getenv("KVFENCE_TRACE") == "" {
		return
	}
	if _, ok := ev.(Tick); ok && len(acts) == 0 {
		return
	}
	fmt.Printf("%d %s <- %T %.300s\n", w.now, who, ev, fmt.Sprintf("%+v", ev))
	for _, a := range acts {
		fmt.Printf("      %T %.300s\n", a, fmt.Sprintf("%+v", a))
	}
}
