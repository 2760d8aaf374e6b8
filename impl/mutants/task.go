package mutants

import (
	"context"
	"sync"
)

// Task is one mutant of one layer that can be tried.
type Task struct {
	Name string
	Hash string // of its function or action
	Try  func(context.Context) (Verdict, error)
}

// CoreTasks are the mutants of the core.
func CoreTasks(l *Lab) (out []Task) {
	for i, s := range l.Sites {
		out = append(out, Task{s.Name, s.Hash, func(ctx context.Context) (Verdict, error) { return l.Try(ctx, i) }})
	}
	return out
}

// Hashes are the hashes of the groups of some tasks.
func Hashes(tasks []Task) map[string]string {
	out := map[string]string{}
	for _, t := range tasks {
		out[Group(t.Name)] = t.Hash
	}
	return out
}

// RunTasks tries tasks with some workers at a time and hands each result to keep, one at a time. The first error ends it.
func RunTasks(ctx context.Context, tasks []Task, workers int, keep func(Entry) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan Task)
	for range max(workers, 1) {
		wg.Go(func() {
			for t := range next {
				v, err := t.Try(ctx)
				if err == nil {
					mu.Lock()
					err = keep(Entry{t.Name, t.Hash, v})
					mu.Unlock()
				}
				if err != nil {
					stop(err)
				}
			}
		})
	}
	for _, t := range tasks {
		select {
		case next <- t:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
