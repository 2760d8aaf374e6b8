package rig

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed init devices.sh
var files embed.FS

// script is one of them.
func script(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		return "exit 1\n" // no such file was embedded: a job without devices fails
	}
	return string(b)
}

// ErrMissing says what this machine lacks to make or run a rig.
var ErrMissing = errors.New("the rig cannot be had here")

// modules are what the rig loads, with all that they need: the host's files, interfaces, soft RoCE and what speaks to it.
func modules() []string {
	return []string{"virtio_pci", "9pnet_virtio", "9p", "dummy", "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm", "rdma_cm", "ib_umad"}
}

// Machine is a kernel with its first file system.
type Machine struct {
	Kernel, Initrd string
	Package        string // Debian's name of the kernel
}

// Tools are the commands that a rig needs, with Debian's package of each.
func Tools() map[string]string {
	return map[string]string{"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "modprobe": "kmod", "depmod": "kmod", "cpio": "cpio", "dpkg-deb": "dpkg", "apt-get": "apt", "apt-cache": "apt", "rdma": "iproute2", "gzip": "gzip"}
}

// Missing is what of Tools is not there.
func Missing() (out []string) {
	for tool, pkg := range Tools() {
		if _, err := exec.LookPath(tool); err != nil {
			out = append(out, fmt.Sprintf("%s (package %s)", tool, pkg))
		}
	}
	return out
}

// Prepare makes the machine in dir, or takes what an earlier run made. The kernel is the one that Debian's linux-image-amd64 stands for now: its name moves
// with security updates, so apt is asked. It is unpacked, not installed.
func Prepare(ctx context.Context, dir string) (m Machine, err error) {
	if missing := Missing(); len(missing) > 0 {
		return m, fmt.Errorf("%w: %s", ErrMissing, strings.Join(missing, ", "))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return m, err
	}
	if m.Package, err = kernelPackage(ctx); err != nil {
		return m, err
	}
	at := filepath.Join(dir, m.Package)
	m.Kernel, m.Initrd = filepath.Join(at, "vmlinuz"), filepath.Join(at, "initrd.gz")
	made, recipe := filepath.Join(at, "made"), script("init")+strings.Join(modules(), " ")
	if old, err := os.ReadFile(made); err == nil && string(old) == recipe {
		return m, nil
	}
	if err := os.RemoveAll(at); err != nil {
		return m, err
	}
	if err := fetchKernel(ctx, at, m.Package); err != nil {
		return m, err
	}
	if err := makeInitrd(ctx, at, m); err != nil {
		return m, err
	}
	return m, os.WriteFile(made, []byte(recipe), 0o644)
}

// kernelPackage asks apt for the kernel's package; an old list is fetched anew once.
func kernelPackage(ctx context.Context) (string, error) {
	for try := 0; ; try++ {
		out, err := output(ctx, "", "apt-cache", "depends", "linux-image-amd64")
		for line := range strings.Lines(out) {
			if _, name, found := strings.Cut(strings.TrimSpace(line), "Depends: linux-image-"); found {
				return "linux-image-" + name, nil
			}
		}
		if try > 0 {
			return "", fmt.Errorf("%w: apt knows no linux-image-amd64: %w", ErrMissing, err)
		}
		if _, err := output(ctx, "", "apt-get", "update", "-qq"); err != nil {
			return "", fmt.Errorf("%w: %w", ErrMissing, err)
		}
	}
}

func fetchKernel(ctx context.Context, at, name string) error {
	if err := os.MkdirAll(filepath.Join(at, "deb"), 0o755); err != nil {
		return err
	}
	_, err := output(ctx, filepath.Join(at, "deb"), "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name)
	if err != nil { // the list may name a version that is gone
		if _, err := output(ctx, "", "apt-get", "update", "-qq"); err != nil {
			return fmt.Errorf("%w: %w", ErrMissing, err)
		}
		if _, err = output(ctx, filepath.Join(at, "deb"), "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name); err != nil {
			return fmt.Errorf("%w: %w", ErrMissing, err)
		}
	}
	debs, err := filepath.Glob(filepath.Join(at, "deb", "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("%w: %d packages came for %s", ErrMissing, len(debs), name)
	}
	if _, err := output(ctx, "", "dpkg-deb", "-x", debs[0], filepath.Join(at, "root")); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(at, "deb"))
}

// makeInitrd packs busybox, init and the modules in the order in which they are loaded.
func makeInitrd(ctx context.Context, at string, m Machine) error {
	version := strings.TrimPrefix(m.Package, "linux-image-")
	root, tree := filepath.Join(at, "root"), filepath.Join(at, "tree")
	if err := os.Rename(filepath.Join(root, "boot", "vmlinuz-"+version), m.Kernel); err != nil {
		return err
	}
	if _, err := output(ctx, "", "depmod", "-b", root, version); err != nil {
		return err
	}
	for _, d := range []string{"bin", "dev", "proc", "sys", "newroot", "modules"} {
		if err := os.MkdirAll(filepath.Join(tree, d), 0o755); err != nil {
			return err
		}
	}
	var order strings.Builder
	seen := map[string]bool{}
	for _, name := range modules() {
		out, err := output(ctx, "", "modprobe", "-d", root, "-S", version, "--show-depends", name)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for line := range strings.Lines(out) {
			path, is := strings.CutPrefix(strings.TrimSpace(line), "insmod ")
			if path, _, _ = strings.Cut(path, " "); !is || seen[path] { // options may follow
				continue
			}
			seen[path] = true
			if err := copyFile(path, filepath.Join(tree, "modules", filepath.Base(path)), 0o644); err != nil {
				return err
			}
			order.WriteString("/modules/" + filepath.Base(path) + "\n")
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err := errors.Join(
		copyFile(busybox, filepath.Join(tree, "bin", "busybox"), 0o755),
		os.WriteFile(filepath.Join(tree, "modules.order"), []byte(order.String()), 0o644),
		os.WriteFile(filepath.Join(tree, "init"), []byte(script("init")), 0o755),
	); err != nil {
		return err
	}
	if _, err := output(ctx, tree, "sh", "-c", "find . | cpio -o -H newc --quiet | gzip -1 > ../initrd.gz"); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(root), os.RemoveAll(tree))
}

func copyFile(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, mode)
}

// output runs a command and returns what it says; an error carries the end of its complaint.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		text := strings.TrimSpace(complaint.String())
		if len(text) > 400 {
			text = text[len(text)-400:]
		}
		return string(out), fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return string(out), nil
}
