package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Binary is one program to run in the rig; its output goes to Name.out.
type Binary struct {
	Name string
	// File is its file in the job's folder; "" is Name.
	File string
	// Files are further ones of the job's folder; they lie in /tmp while it runs, as File does.
	Files []string
	Args  []string
	Env   []string
	// Limit ends it, with status 124.
	Limit time.Duration
	// Planted ones are there to be refused: the job's status is not theirs.
	Planted bool
}

// WriteJob writes job/run.sh: the devices, then each binary, in order, whatever became of the one before. The job's status is that of the
// first that failed and was not planted; Name.rc has each one's own.
func WriteJob(job string, bins []Binary) error {
	var s strings.Builder
	s.WriteString("cd /mnt/job\n")
	s.WriteString(script("devices.sh"))
	s.WriteString("rc=0\n")
	for _, b := range bins {
		file := b.File
		if file == "" {
			file = b.Name
		}
		for _, f := range append([]string{file}, b.Files...) {
			fmt.Fprintf(&s, "{ [ -e /tmp/%s ] || cp ./%s /tmp/; } && ", f, f) // the job's folder is slow
		}
		s.WriteString("env")
		for _, e := range b.Env {
			s.WriteString(" " + quote(e))
		}
		fmt.Fprintf(&s, " timeout -k 5 %d /tmp/%s", max(1, int(b.Limit.Seconds())), file)
		for _, a := range b.Args {
			s.WriteString(" " + quote(a))
		}
		fmt.Fprintf(&s, " > %s.out 2>&1\nr=$?; echo $r > %s.rc\n", b.Name, b.Name)
		if !b.Planted {
			s.WriteString("[ $rc != 0 ] || rc=$r\n")
		}
	}
	s.WriteString("exit $rc\n")
	return os.WriteFile(filepath.Join(job, "run.sh"), []byte(s.String()), 0o755)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
