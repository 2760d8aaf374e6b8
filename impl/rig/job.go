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
	Name string // also its file in the job's folder
	Args []string
	Env  []string
	// Limit ends it, with status 124.
	Limit time.Duration
}

// WriteJob writes job/run.sh: the devices, then each binary, in order, whatever became of the one before. The job's status is that of the first that failed.
func WriteJob(job string, bins []Binary) error {
	var s strings.Builder
	s.WriteString("cd /mnt/job\n")
	s.WriteString(devicesScript)
	s.WriteString("rc=0\n")
	for _, b := range bins {
		fmt.Fprintf(&s, "cp ./%s /tmp/%s && env", b.Name, b.Name) // a run file of its own: the job's folder is slow
		for _, e := range b.Env {
			s.WriteString(" " + quote(e))
		}
		fmt.Fprintf(&s, " timeout -k 5 %d /tmp/%s", max(1, int(b.Limit.Seconds())), b.Name)
		for _, a := range b.Args {
			s.WriteString(" " + quote(a))
		}
		fmt.Fprintf(&s, " > %s.out 2>&1\nr=$?; echo $r > %s.rc; [ $rc != 0 ] || rc=$r\nrm -f /tmp/%s\n", b.Name, b.Name, b.Name)
	}
	s.WriteString("exit $rc\n")
	return os.WriteFile(filepath.Join(job, "run.sh"), []byte(s.String()), 0o755)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
