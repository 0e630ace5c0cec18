package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var givenFlag = regexp.MustCompile(`(?:^|[\s\[,])--([a-z][a-z-]+)`)

// TestDeployFiles: the flags of run that the deploy files give are those of this program.
func TestDeployFiles(t *testing.T) {
	root := newRootCommand()
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range []string{"cron/glmbatch", "systemd/glmbatch.service", "kubernetes/job.yaml",
		"kubernetes/cronjob.yaml", "slurm/job.sbatch"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if !strings.Contains(line, "glmbatch run") && !strings.Contains(line, "args: [run") {
				continue
			}
			for _, m := range givenFlag.FindAllStringSubmatch(line, -1) {
				found++
				if run.Flags().Lookup(m[1]) == nil {
					t.Errorf("%s gives --%s, which run does not have", name, m[1])
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d flags: the test tests nothing", found)
	}
}
