// Package kvfence_test holds the rules of the repository: who may import whom, what the default build may depend on, and the
// sizes and words of its files. It has no code of its own. Each rule is a function in rules_check_test.go and has a planted
// case that it must refuse.
package kvfence_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// allowedImports says which packages of this module each folder may import, with all below it; "*" is any. Folders that do not
// stand here take the rule of the nearest one above. Tests may import more, but for those of model.
func allowedImports() map[string][]string {
	return map[string][]string{
		"spec":       {},
		"model":      {"spec", "model"},
		"impl/pages": {"spec"},
		"impl/core":  {"spec", "impl/pages"},
		"impl/trace": {"spec", "impl/core"},
		"impl/check": {"spec", "model", "impl/trace", "impl/tlc"},
		// Transports store into and copy from pools: they know impl/device beside spec.
		"impl/transport": {"spec", "impl/device", "impl/transport"},
		"impl/device":    {"spec", "impl/device"},
		// The one device that launches kernels.
		"impl/device/cuda": {"spec", "kernels", "impl/device"},
		"impl/config":      {"spec"},
		// One process can have all roles: impl/node puts the gateway beside its sides.
		"impl/node":     {"spec", "impl/gateway", "impl/pages", "impl/core", "impl/transport", "impl/device", "impl/config", "impl/workload", "impl/trace", "impl/node"},
		"impl/node/api": {"spec"},
		"impl/sim":      {"spec", "model", "impl/core", "impl/trace", "impl/pages", "impl/transport", "impl/device", "impl/sim"},
		// The gateway needs the workload's tokenizer to count what the client sent.
		"impl/gateway":  {"spec", "impl/node/api", "impl/config", "impl/workload", "impl/gateway"},
		"impl/workload": {"spec", "impl/workload"},
		"impl/fleet":    {"spec", "impl/fleet"},
		"impl/cluster":  {"spec"},
		"impl/web":      {"spec"},
		"impl/capi":     {"spec", "impl/node"},
		"impl/bench":    {"*"},
		// Recorders of histories for tests.
		"impl/histories": {"spec", "model/history", "impl/pages", "impl/workload"},
		"impl/chaos":     {"spec", "impl/workload"},
		// A machine for tests, which knows none of them.
		"impl/rig": {},
		// Mutants of all layers.
		"impl/mutants": {"spec", "model", "proofs", "impl/tlc", "impl/overlay"},
		// Changed copies of packages, for mutants and planted bugs.
		"impl/overlay":  {},
		"impl/lockstep": {"spec", "model", "impl/core", "impl/pages", "impl/lockstep"},
		"impl/plants":   {"spec", "model", "impl/core", "impl/sim", "impl/transport", "impl/overlay"},
		"impl/cmd":      {"*"},
		// Launch arguments and the emulation: hosts of devices import them, not they the hosts.
		"kernels":       {"spec", "kernels"},
		"kernels/check": {"spec", "kernels", "impl/device"},
		// The GPU check knows kernels and a driver, not the engine.
		"impl/gpucheck": {"spec", "kernels", "impl/device", "impl/gpucheck"},
		"fuzz":          {"*"},
		// The proofs know TLA+ and solvers, nothing of the engine.
		"proofs": {"proofs"},
		// The specifications go into the binary with their runner, which shares the finder of the tools with the proofs.
		"TLA":      {},
		"impl/tlc": {"TLA", "proofs/sany", "impl/tlc"},
	}
}

// purePackages compute and do nothing else; impureImports are clocks, chance, sockets, logs, locks and files.
func purePackages() []string {
	return []string{"spec", "model", "model/history", "impl/pages", "impl/core"}
}

func impureImports() []string {
	return []string{"time", "math/rand", "crypto/rand", "hash/maphash", "net", "log", "sync", "os", "syscall", "context", "runtime", "golang.org/x", "unsafe"}
}

// deniedWords are what no tracked file says. The patterns are put together so that this file does not say it either.
func deniedWords() map[string]*regexp.Regexp {
	join := func(parts ...string) *regexp.Regexp { return regexp.MustCompile(strings.Join(parts, "")) }
	return map[string]*regexp.Regexp{
		"a path of one machine": join(`(^|[^A-Za-z0-9_./-])/(wo`, `rk|ro`, `ot|ho`, `me|fa`, `rm|Us`, `ers)/[A-Za-z]`),
		"a registry's host":     join(`pro`, `xy\.golang\.org|registry\.np`, `mjs\.org|py`, `pi\.org|cra`, `tes\.io|repo[0-9]?\.ma`, `ven\.|deb\.deb`, `ian\.org`),
		"work left open":        join(`\b(TO`, `DO|FIX`, `ME|XX`, `X)\b|not imple`, `mented|unimple`, `mented`),
	}
}

// repository is the tracked files of this repository, or all files where git does not know them.
func repository(t *testing.T) tree {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	var files []string
	for p := range strings.SplitSeq(string(out), "\x00") {
		if info, err := os.Lstat(p); p != "" && err == nil && info.Mode().IsRegular() {
			files = append(files, p)
		}
	}
	if err != nil || len(files) == 0 {
		require.NoError(t, filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && slices.Contains([]string{".git", "bin", "build"}, p) {
				return filepath.SkipDir
			}
			if err == nil && d.Type().IsRegular() {
				files = append(files, filepath.ToSlash(p))
			}
			return err
		}))
	}
	require.Contains(t, files, "go.mod")
	return tree{os.DirFS("."), files}
}

func parsed(t *testing.T, tr tree) []goFile {
	files, err := tr.parse()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// planted is a tree with the files given, name and content in turn.
func planted(t *testing.T, pairs ...string) tree {
	m := fstest.MapFS{}
	var files []string
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		files = append(files, pairs[i])
	}
	return tree{m, files}
}

func TestRules_Imports_FollowTheTable(t *testing.T) {
	require.Empty(t, checkImports(parsed(t, repository(t)), allowedImports()))
}

func TestRules_Imports_PlantedOnes_AreRefused(t *testing.T) {
	bad := checkImports(parsed(t, planted(t,
		"impl/core/a.go", "package core\nimport \"kvfence/impl/node\"\n",
		"model/b.go", "package model\nimport \"kvfence/impl/core\"\n",
		"model/b_test.go", "package model\nimport \"kvfence/impl/pages\"\n",
		"impl/transport/tcp/c.go", "package tcp\nimport \"kvfence/impl/core\"\n",
		"impl/new/d.go", "package new\n",
		"spec/e.go", "package spec\nimport \"kvfence/impl/specials\"\n",
		"impl/core/good.go", "package core\nimport (\n\"kvfence/impl/pages\"\n\"kvfence/spec\"\n)\n",
		"impl/core/good_test.go", "package core\nimport \"kvfence/impl/device\"\n",
	)), allowedImports())
	require.Equal(t, []string{
		"impl/core/a.go: impl/core may not import impl/node", "model/b.go: model may not import impl/core",
		"model/b_test.go: model may not import impl/pages", "impl/transport/tcp/c.go: impl/transport/tcp may not import impl/core",
		"impl/new/d.go: no rule for package impl/new", "spec/e.go: spec may not import impl/specials",
	}, bad)
}

func TestRules_PurePackages_ComputeOnly(t *testing.T) {
	require.Empty(t, checkPure(parsed(t, repository(t)), purePackages(), impureImports()))
}

func TestRules_PurePackages_PlantedImpurity_IsRefused(t *testing.T) {
	bad := checkPure(parsed(t, planted(t,
		"impl/core/a.go", "package core\nimport \"time\"\n", "spec/b.go", "package spec\nimport \"sync/atomic\"\n",
		"impl/pages/c.go", "package pages\nimport \"math/rand/v2\"\n", "model/d.go", "package model\nimport \"log/slog\"\n",
		"impl/node/good.go", "package node\nimport \"time\"\n", "spec/good.go", "package spec\nimport \"math/bits\"\n", "spec/good_test.go", "package spec\nimport \"os\"\n",
	)), purePackages(), impureImports())
	require.Len(t, bad, 4)
}

// notInDefaultBuild need cgo, or link libc without it.
func notInDefaultBuild() []string {
	return []string{"github.com/NVIDIA/go-nvml", "github.com/ebitengine/purego", "testing"}
}

func TestRules_DefaultBuild_HasNoCgo(t *testing.T) {
	c := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{len .CgoFiles}}", "./impl/cmd/kvfence")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "kvfence/impl/core 0")
	require.Empty(t, checkDependencies(string(out), notInDefaultBuild()))
}

func TestRules_DefaultBuild_PlantedCgo_IsRefused(t *testing.T) {
	list := "runtime 0\nnet 3\nruntime/cgo 0\ngithub.com/ebitengine/purego/internal/cgo 0\ngithub.com/NVIDIA/go-nvml/pkg/nvml 0\ngithub.com/NVIDIA/go-nvml-other 0\n"
	require.Equal(t, []string{
		"net has cgo files", "runtime/cgo is in the default build",
		"github.com/ebitengine/purego/internal/cgo is in the default build", "github.com/NVIDIA/go-nvml/pkg/nvml is in the default build",
	}, checkDependencies(list, notInDefaultBuild()))
}

func TestRules_EachPackage_HasOneComment(t *testing.T) {
	require.Empty(t, checkPackageComments(parsed(t, repository(t))))
}

func TestRules_PackageComments_PlantedOnes_AreRefused(t *testing.T) {
	bad := checkPackageComments(parsed(t, planted(t,
		"a/a.go", "package a\n", "b/a.go", "// Package b is one.\npackage b\n", "b/b.go", "// Package b is two.\npackage b\n",
		"c/a.go", "//go:build linux\n\n// Package c is good.\npackage c\n", "c/b.go", "package c\n", "d/d_test.go", "package d\n",
	)))
	require.Equal(t, []string{"a: 0 package comments ()", "b: 2 package comments (b/a.go, b/b.go)"}, bad)
}

func TestRules_Sizes_FitAScreen(t *testing.T) {
	require.Empty(t, checkSizes(parsed(t, repository(t)), 600, 70))
}

func TestRules_Sizes_PlantedOnes_AreRefused(t *testing.T) {
	body := func(n int) string { return "package a\n\nfunc f() {\n" + strings.Repeat("\tf()\n", n) + "}\n" }
	bad := checkSizes(parsed(t, planted(t, "a/long.go", "package a\n"+strings.Repeat("\n", 600), "a/func.go", body(69), "a/good.go", body(68), "a/a_test.go", body(100))), 600, 70)
	require.Equal(t, []string{"a/long.go: 601 lines, 600 at most", "a/func.go: function f has 71 lines, 70 at most"}, bad)
}

func TestRules_Globals_DoNotChange(t *testing.T) {
	require.Empty(t, checkGlobals(parsed(t, repository(t))))
}

func TestRules_Globals_PlantedState_IsRefused(t *testing.T) {
	bad := checkGlobals(parsed(t, planted(t,
		"a/a.go", "package a\nvar ErrX = errors.New(\"x\")\nvar _ I = T{}\nvar files embed.FS\nvar table = [2]int{1, 2}\nvar cache = map[string]int{}\n"+
			"var n int\nvar list = []int{1}\nvar p = &T{}\nvar m = make(chan int)\nvar once = find()\nvar twice = find()\nfunc f() { twice = 3; once := 4 }\n",
	)))
	require.Equal(t, []string{"a/a.go: package variable cache", "a/a.go: package variable n", "a/a.go: package variable list",
		"a/a.go: package variable p", "a/a.go: package variable m", "a/a.go: package variable twice"}, bad)
}

func TestRules_Words_NoMachineNoRegistryNothingOpen(t *testing.T) {
	bad, err := checkText(repository(t), deniedWords())
	require.NoError(t, err)
	require.Empty(t, bad)
}

func TestRules_Words_PlantedOnes_AreRefused(t *testing.T) {
	bad, err := checkText(planted(t,
		"a.md", "see /wo"+"rk/main/spec\n", "b.go", "package b // TO"+"DO\n", "c.yml", "proxy: https://pro"+"xy.golang.org\n",
		"good.md", "spec/work/x, /worker, methodology, a/home/run\n", "d.bin", "\x00/ro"+"ot/x",
	), deniedWords())
	require.NoError(t, err)
	require.Equal(t, []string{"a.md:1: a path of one machine", "b.go:1: work left open", "c.yml:1: a registry's host"}, bad)
}

// Each module that the default build links has a licence that goes with ours; a new one must be read by a person first.
func TestRules_Licences_OfLinkedModules_AreKnown(t *testing.T) {
	c := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "./impl/cmd/kvfence")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.Output()
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		require.NotEmpty(t, licenceOf(dir), "%s has no licence that this test knows", name)
	}
	require.NotEmpty(t, seen)
}

// licenceOf names the licence of the module in dir, or "".
func licenceOf(dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]*"))
	if err != nil {
		return ""
	}
	texts := map[string]string{
		"Apache-2.0": "Apache License Version 2.0", "MIT": "Permission is hereby granted, free of charge, to any person obtaining a copy",
		"BSD": "Redistribution and use in source and binary forms, with or without", "ISC": "Permission to use, copy, modify, and/or distribute this software",
	}
	names := []string{"Apache-2.0", "BSD", "ISC", "MIT"}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, n := range names {
			if strings.Contains(strings.Join(strings.Fields(string(text)), " "), texts[n]) {
				return n
			}
		}
	}
	return ""
}

func TestRules_Licences_UnknownText_IsRefused(t *testing.T) {
	dir := t.TempDir()
	require.Empty(t, licenceOf(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("All rights reserved."), 0o644))
	require.Empty(t, licenceOf(dir))
	require.Equal(t, "Apache-2.0", licenceOf("."), fmt.Sprint("our own"))
}
