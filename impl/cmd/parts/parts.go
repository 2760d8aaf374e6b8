package main

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// part is one check with its limit. A part with inputs is heavy: for people it is not run again while they are unchanged.
type part struct {
	name   string
	about  string
	limit  time.Duration
	inputs []string // files and folders, relative to the root
	run    func(*env)
}

// engine is what the heavy parts depend on.
func engine() []string { return []string{"go.mod", "go.sum", "spec", "impl", "fuzz"} }

func buildPart() part {
	return part{"build", "static build, go vet, gofmt, rules of the repository", 4 * time.Minute, nil, func(e *env) {
		e.command("build", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", "bin/kvfence", "./impl/cmd/kvfence")
		e.command("vet", nil, "go", "vet", "./...")
		e.command("vet chaos", nil, "go", "vet", "-tags=chaos", "./impl/chaos")
		if e.needs("vet verbs", verbsHeader) {
			e.command("vet verbs", nil, "go", "vet", "-tags=verbs,rig,chaos", "./impl/transport/verbs", "./impl/node", "./impl/cmd/kvfence", "./impl/rig/...", "./impl/chaos")
		}
		e.silent("gofmt", "gofmt", "-l", "spec", "impl", "model", "proofs", "fuzz", "kernels", "rules_test.go")
		e.goTest("-count=1", ".")
	}}
}

// unraced are packages whose tests are one goroutine that computes for minutes: the race detector has nothing to find there (what runs
// simulations side by side is tested under it in impl/cmd/kvfence).
func unraced() []string {
	return []string{"kvfence/model", "kvfence/proofs/coq", "kvfence/impl/sim", "kvfence/impl/lockstep", "kvfence/model/follow"}
}

func testPart() part {
	return part{"test", "go test -race of every package but the kernels", 13 * time.Minute, nil, func(e *env) {
		all, err := e.lines("go", "list", "./...")
		if err != nil {
			e.book("go list", err)
			return
		}
		var once []string
		if e.ci {
			once = []string{"-count=1"}
		}
		raced := slices.DeleteFunc(all, func(p string) bool { return slices.Contains(unraced(), p) || inKernels(p) })
		if e.needs("race detector", "gcc") {
			raced = append([]string{"-race"}, raced...)
		}
		e.goTest(append(slices.Clone(once), raced...)...)
		e.goTest(append(slices.Clone(once), unraced()...)...)
	}}
}

// tlcClosing is the last line of kvfence spec check: as expected, not, left out.
var tlcClosing = regexp.MustCompile(`(?m)^\d+ configurations, (\d+) as expected, (\d+) not, (\d+) long ones left out`)

func tlcPart(limit time.Duration, args ...string) part {
	return part{"tlc", "the specification, all guards on and each off", limit, []string{"TLA", "impl/tlc", "impl/cmd/kvfence/spec.go", "proofs/sany", "docs/counterexamples"}, func(e *env) {
		if e.needs("tlc", "java") {
			check := []string{"run", "./impl/cmd/kvfence", "spec", "check", "--counterexamples", "docs/counterexamples"}
			e.counted("tlc", tlcClosing, "long configurations: make test-long runs them", "go", append(check, args...)...)
		}
	}}
}

// proofsPart discharges the obligations; guards and edges are make proofs'.
func proofsPart() part {
	return part{"proofs", "the invariants for any size, by two solvers", 5 * time.Minute, []string{"TLA", "proofs", "impl/cmd/prove"}, func(e *env) {
		if e.needs("proofs", "java") && e.needs("proofs", "z3") && e.needs("proofs", "cvc5") {
			e.command("proofs", nil, "go", "run", "./impl/cmd/prove")
		}
	}}
}

// modelClosing is the line but one of impl/cmd/model.
var modelClosing = regexp.MustCompile(`(?m)^(\d+) graphs equal, (\d+) not, (\d+) long ones left out`)

// modelPart compares graphs, and walks with the twin alone all configurations, also those that TLC takes minutes for; how fast the explorer is beside TLC is make model's, for machines with nothing else to do.
func modelPart(limit time.Duration, args ...string) part {
	return part{"model", "the twin's graph is TLC's, states and steps, mutants too", limit, []string{"TLA", "model", "impl/tlc", "impl/cmd/model", "proofs/sany", "proofs/dump"}, func(e *env) {
		if e.needs("model", "java") {
			e.counted("model", modelClosing, "long settings: make test-long runs them", "go", append([]string{"run", "./impl/cmd/model"}, args...)...)
			e.command("walk", nil, "go", "run", "./impl/cmd/model", "-long", "walk")
		}
	}}
}

// coqPart checks the headline theorem.
func coqPart() part {
	return part{"coq", "the headline theorem, its assumptions, its instance's graph", 4 * time.Minute, []string{"TLA", "proofs", "impl/cmd/coq"}, func(e *env) {
		if e.needs("coq", "coqc") && e.needs("coq", "java") {
			e.command("coq", nil, "go", "run", "./impl/cmd/coq")
		}
	}}
}

// mutantsPart drops the design page's guards and a sample of all guards and updates, or whatever has changed since the record.
func mutantsPart(limit time.Duration, args ...string) part {
	return part{"mutants", "guards and updates dropped one at a time: somebody notices", limit, []string{"TLA", "model", "proofs", "impl"}, func(e *env) {
		if e.needs("mutants", "java") && e.needs("mutants", "z3") {
			e.command("mutants", nil, "go", append([]string{"run", "./impl/cmd/mutants"}, args...)...)
		}
	}}
}

// simPart runs seeds of the simulated cluster until so many steps.
func simPart(limit time.Duration, steps string) part {
	return part{"sim", "the engine's machines in a simulated cluster under faults", limit, []string{"go.mod", "spec", "model", "impl/core", "impl/pages", "impl/device", "impl/transport", "impl/sim", "impl/trace", "impl/cmd/kvfence/simulate.go"}, func(e *env) {
		e.command("simulate", []string{"CGO_ENABLED=0"}, "go", "run", "./impl/cmd/kvfence", "simulate", "--steps", steps, "--scripts", "build")
	}}
}

// lockstepPart replays steps of the specification on the engine's machines, and counts what simulation reaches of them.
func lockstepPart(limit time.Duration, replay, cover []string) part {
	return part{"lockstep", "the specification's steps on the engine's machines, and what simulation reaches of them", limit, []string{"go.mod", "spec", "TLA", "model", "impl/core", "impl/pages", "impl/transport", "impl/lockstep", "impl/cmd/lockstep"}, func(e *env) {
		e.command("replay", nil, "go", append([]string{"run", "./impl/cmd/lockstep", "replay"}, replay...)...)
		e.command("cover", nil, "go", append([]string{"run", "./impl/cmd/lockstep", "cover"}, cover...)...)
	}}
}

// smallSettings are those of lock-step that simulation reaches wholly within half a minute; the others are make test-long's.
func smallSettings() []string {
	return []string{"push", "fence", "restart", "torn", "flip", "tail", "life", "big", "again"}
}

// plantsPart plants the public faults in the engine: each must be refused by name.
func plantsPart(limit time.Duration, args ...string) part {
	return part{"plants", "the public faults planted in the engine are refused", limit, []string{"go.mod", "spec", "model", "impl"}, func(e *env) {
		e.command("plants", nil, "go", append([]string{"run", "./impl/cmd/plants"}, args...)...)
	}}
}

// chaosPart runs separate processes under faults: short storms, or all of them, longer, and a soak of ten minutes.
func chaosPart(long bool) part {
	limit, test, vars := 8*time.Minute, "7m", []string(nil)
	if long {
		limit, test = time.Hour, "55m"
		vars = []string{"KVFENCE_CHAOS_LONG=1", "KVFENCE_CHAOS_SECONDS=60", "KVFENCE_SOAK_SECONDS=600"}
	}
	return part{"chaos", "separate processes under faults", limit, engine(), func(e *env) {
		e.goTestWith(vars, "-count=1", "-timeout="+test, "-tags=chaos", "./impl/chaos")
	}}
}

func fuzzPart(each, all time.Duration) part {
	return part{"fuzz", "each fuzz target, its corpus and then new inputs", all + 3*time.Minute, engine(), func(e *env) { e.fuzz(each, all) }}
}

// verbsHeader is what the native build needs beside a C compiler; the library itself is opened at run time.
const verbsHeader = "/usr/include/infiniband/verbs.h"

// rdmaClosing is the last line of impl/cmd/rdma.
var rdmaClosing = regexp.MustCompile(`(?m)^(\d+) passed, (\d+) failed, (\d+) skipped`)

// rdmaPart runs the verbs transport's tests in a machine with soft RoCE.
func rdmaPart(limit time.Duration, args ...string) part {
	return part{"rdma", "the verbs transport and its assumptions, in a machine with soft RoCE", limit, engine(), func(e *env) {
		if e.needs("rdma", "qemu-system-x86_64") && e.needs("rdma", "gcc") && e.needs("rdma", verbsHeader) {
			e.counted("rdma", rdmaClosing, "", "go", append([]string{"run", "./impl/cmd/rdma"}, args...)...)
		}
	}}
}

// inKernels reports whether a package's tests are part kernels': they drive other programs, one case after the other.
func inKernels(p string) bool {
	return p == "kvfence/kernels" || strings.HasPrefix(p, "kvfence/kernels/")
}

// kernelsClosing is the last line of impl/cmd/kernels.
var kernelsClosing = regexp.MustCompile(`(?m)^(\d+) passed, (\d+) failed, (\d+) skipped`)

// kernelsPart compiles the GPU kernels for each architecture, and runs them on the CPU. In CI no compiler may be missing.
func kernelsPart(limit time.Duration, args ...string) part {
	return part{"kernels", "GPU kernels compiled, and run on the CPU against the reference, planted bugs too", limit, append(engine(), "kernels", ".ci/cuda.txt"), func(e *env) {
		compile := []string{"run", "./impl/cmd/kernels"}
		if e.ci {
			compile = append(compile, "-require")
		}
		e.counted("compile", kernelsClosing, "images: a compiler is missing", "go", compile...)
		if e.needs("kernels on the CPU", "g++") {
			e.goTest("-count=1", "./kernels/compile", "./kernels/images", "./kernels/emulation", "./kernels/plants")
			e.goTest(append([]string{"-count=1", "./kernels"}, args...)...)
			e.command("vet cuda", nil, "go", "vet", "-tags=cuda", "./impl/gpucheck/...", "./impl/cmd/gpucheck", "./impl/device/...", "./impl/node", "./impl/cmd/kvfence")
			e.goTest("-count=1", "-tags=cuda", "./impl/gpucheck/...", "./impl/device/gpu", "./impl/device/cuda/...")
		}
	}}
}

func benchSmokePart() part {
	return part{"bench-smoke", "every mover of kvfence bench runs and verifies; no figure is judged", 2 * time.Minute, engine(), func(e *env) {
		e.command("bench-smoke", []string{"CGO_ENABLED=0"}, "go", "run", "./impl/cmd/kvfence", "bench", "--quick")
	}}
}

// setNames are the sets that a person can ask for.
func setNames() []string { return []string{"test", "fast", "long", "spec", "kernels"} }

// partsOf is what a set runs, in order: cheap before dear.
func partsOf(set string) []part {
	switch set {
	case "fast":
		fast := part{"test", "go test -short of every package, without the race detector", 3 * time.Minute, nil, func(e *env) { e.goTest("-short", "./...") }}
		return []part{buildPart(), fast}
	case "long":
		rapid := part{"rapid", "property tests with 20,000 cases each", 60 * time.Minute, nil, func(e *env) { e.rapid(20000) }}
		histories := part{"histories", "histories of ten thousand operations and more over several nodes", time.Hour, nil, func(e *env) {
			e.goTestWith([]string{"KVFENCE_HISTORY_LONG=1"}, "-race", "-count=1", "-timeout=50m", "-run=History", "./impl/node", "./impl/gateway")
		}}
		follow := part{"follow", "more seeds and states under the specification at any size, more altered traces", time.Hour, nil, func(e *env) {
			e.goTest("-count=1", "-timeout=50m", "-run=EveryStep", "./impl/sim", "-sim.follow=2000")
			e.goTest("-count=1", "-timeout=50m", "-run=Altered", "./impl/check", "-check.seeds=14", "-check.each=3")
			e.goTest("-count=1", "-timeout=50m", "./model/follow", "-follow.states=5000")
		}}
		return []part{buildPart(), testPart(), histories, follow, tlcPart(6*time.Hour, "--long"), modelPart(2*time.Hour, "-long"), proofsPart(), coqPart(),
			mutantsPart(6*time.Hour, "-all"), simPart(time.Hour, "100000000"), lockstepPart(2*time.Hour, nil, nil), plantsPart(2 * time.Hour), chaosPart(true), rapid, fuzzPart(5*time.Minute, 2*time.Hour), rdmaPart(time.Hour, "-limit", "55m", "-long"), kernelsPart(time.Hour, "-timeout=50m", "-kernels.long=40")}
	case "kernels":
		return []part{kernelsPart(10 * time.Minute)}
	case "spec":
		words := part{"words", "vectors, tables and words of spec/", 5 * time.Minute, nil, func(e *env) { e.goTest("-count=1", "./spec") }}
		return []part{words, tlcPart(20 * time.Minute)}
	}
	return []part{
		buildPart(), testPart(), tlcPart(10 * time.Minute), modelPart(5*time.Minute, "equal", "mutants"), proofsPart(), coqPart(),
		mutantsPart(5 * time.Minute), simPart(4*time.Minute, "24000000"), lockstepPart(4*time.Minute, []string{"-share", "25"}, smallSettings()), plantsPart(4*time.Minute, "-pinned"), benchSmokePart(), chaosPart(false), fuzzPart(10*time.Second, 3*time.Minute), rdmaPart(7 * time.Minute), kernelsPart(4 * time.Minute),
	}
}
