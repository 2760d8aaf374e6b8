package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The verdicts on a history that is not accepted.
var (
	ErrRefused = errors.New("history is refused")
	ErrUnknown = errors.New("history is not decided in time")
)

// limitNanos bounds one check; what needs more is not decided, and that is a failure.
const limitNanos = 60_000_000_000

// Client records the operations of one goroutine. Not safe for concurrent use: each goroutine has its own, with one clock for all.
type Client struct {
	ID  int
	Now func() int64 // monotonic, one for all clients, in any unit
	Ops []porcupine.Operation
}

// Do records one operation: f carries it out and returns its output.
func (c *Client) Do(in any, f func() any) any {
	call := c.Now()
	out := f()
	c.Ops = append(c.Ops, porcupine.Operation{ClientId: c.ID, Input: in, Call: call, Output: out, Return: c.Now()})
	return out
}

// Join is the history of all clients, in order of the calls.
func Join(clients ...*Client) (all []porcupine.Operation) {
	for _, c := range clients {
		all = append(all, c.Ops...)
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return int(max(-1, min(1, a.Call-b.Call))) })
	return all
}

// Check judges a history: nil if some order of it is a run of the model. The error wraps ErrRefused with the first
// operations that fit nowhere, or ErrUnknown.
func Check(m porcupine.Model, ops []porcupine.Operation) error {
	// The plain check stops at the first bad partition; the verbose one, which remembers what it tried, explains.
	switch porcupine.CheckOperationsTimeout(m, ops, limitNanos) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w: %d operations", ErrUnknown, len(ops))
	}
	_, info := porcupine.CheckOperationsVerbose(m, ops, limitNanos)
	return fmt.Errorf("%w: %s", ErrRefused, explain(m, ops, info))
}

// explain says, for the first partition that has no order, how far one came and what could not be next.
func explain(m porcupine.Model, ops []porcupine.Operation, info porcupine.LinearizationInfo) string {
	parts := [][]porcupine.Operation{ops}
	if m.Partition != nil {
		parts = m.Partition(ops)
	}
	for i, partials := range info.PartialLinearizations() {
		best := []int(nil)
		for _, p := range partials {
			if len(p) > len(best) {
				best = p
			}
		}
		if i < len(parts) && len(best) < len(parts[i]) {
			return explainPart(m, parts[i], best)
		}
	}
	return "no order found"
}

func explainPart(m porcupine.Model, part []porcupine.Operation, done []int) string {
	state := m.Init()
	for _, id := range done {
		_, state = m.Step(state, part[id].Input, part[id].Output)
	}
	// Operations are numbered as they stand in the partition. What must come next was called before the earliest of the rest returned.
	rest, end := []porcupine.Operation(nil), int64(0)
	for id, op := range part {
		if !slices.Contains(done, id) {
			if rest == nil || op.Return < end {
				end = op.Return
			}
			rest = append(rest, op)
		}
	}
	var lines []string
	for _, op := range rest {
		if op.Call <= end {
			lines = append(lines, fmt.Sprintf("client %d: %+v -> %+v", op.ClientId, op.Input, op.Output))
		}
	}
	return fmt.Sprintf("%d of %d operations fit; then none of these does: %s; in state %+v", len(done), len(part), strings.Join(lines, "; "), state)
}
