package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"glmbatch/datasets"
)

// chooseShard is the shard of --shard, or else the one that a scheduler gave this
// process: a task of a Slurm array, a pod of a Kubernetes Indexed Job. from says
// which variable it came from; a whole job is 0 of 1.
func chooseShard(flag string, env func(string) string) (s datasets.Shard, from string, err error) {
	whole := datasets.Shard{Index: 0, Of: 1}
	slurm, pod := env("SLURM_ARRAY_TASK_ID"), env("JOB_COMPLETION_INDEX")
	switch {
	case flag != "":
		if _, err := fmt.Sscanf(flag, "%d/%d", &s.Index, &s.Of); err != nil || s.String() != flag || s.Of < 1 ||
			s.Of > 99_999 || s.Index < 0 || s.Index >= s.Of {
			return whole, "", fmt.Errorf("--shard %q is not i/N, with i from 0 to N-1", flag)
		}
		return s, "", nil
	case slurm != "" && pod != "":
		return whole, "",
			errors.New(
				"SLURM_ARRAY_TASK_ID and JOB_COMPLETION_INDEX are both set: say which shard this is with --shard")
	case slurm != "":
		s, err = slurmShard(env)
		return s, "SLURM_ARRAY_TASK_ID", err
	case pod != "":
		s, err = podShard(env)
		return s, "JOB_COMPLETION_INDEX", err
	}
	return whole, "", nil
}

// slurmShard numbers an array's tasks from 0, whatever their least number and step.
func slurmShard(env func(string) string) (datasets.Shard, error) {
	whole := datasets.Shard{Index: 0, Of: 1}
	v := map[string]int{"STEP": 1}
	for _, name := range []string{"ID", "COUNT", "MIN", "MAX", "STEP"} {
		text := env("SLURM_ARRAY_TASK_" + name)
		if text == "" && name == "STEP" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return whole, fmt.Errorf("SLURM_ARRAY_TASK_%s is %q: say which shard this is with --shard", name, text)
		}
		v[name] = n
	}
	step := max(1, v["STEP"])
	i, n := (v["ID"]-v["MIN"])/step, v["COUNT"]
	if (v["ID"]-v["MIN"])%step != 0 || v["MIN"]+(n-1)*step != v["MAX"] || i < 0 || i >= n || n > 99_999 {
		return whole,
			fmt.Errorf("task %d is one of %d from %d to %d, which are not evenly spaced: say which shard this is "+
				"with --shard", v["ID"], n, v["MIN"], v["MAX"])
	}
	if n == 1 && v["ID"] > 0 {
		return whole,
			fmt.Errorf("task %d is the only one of its array: run a lost shard again with --shard %d/N, or the whole "+
				"job with --shard 0/1", v["ID"], v["ID"])
	}
	return datasets.Shard{Index: i, Of: n}, nil
}

// podShard needs the number of completions, which Kubernetes does not tell its pods.
func podShard(env func(string) string) (datasets.Shard, error) {
	i, err1 := strconv.Atoi(env("JOB_COMPLETION_INDEX"))
	n, err2 := strconv.Atoi(env("JOB_COMPLETIONS"))
	if err1 != nil || err2 != nil || i < 0 || i >= n || n > 99_999 {
		return datasets.Shard{Index: 0, Of: 1},
			fmt.Errorf("JOB_COMPLETION_INDEX is %q and JOB_COMPLETIONS is %q: set JOB_COMPLETIONS in the pod's "+
				"template to the Job's completions, or give --shard",
				env("JOB_COMPLETION_INDEX"), env("JOB_COMPLETIONS"))
	}
	return datasets.Shard{Index: i, Of: n}, nil
}

// jobDir is the folder of this process: that of --out, or its shard's in it. For a
// URL it is the one in which the job works.
func (r *runFlags) jobDir() string {
	if r.remoteDir != "" {
		return r.remoteDir
	}
	if r.rows.Shards > 1 {
		return filepath.Join(r.out, datasets.Shard{Index: r.rows.Shard, Of: r.rows.Shards}.Dir())
	}
	return r.out
}

// errMerged: the job that this is a shard of is complete.
var errMerged = errors.New("the job is complete")

// checkShards refuses to mix a job's shards with another way of running it.
func (r *runFlags) checkShards() error {
	if r.rows.Shards > 1 {
		if _, err := os.Stat(filepath.Join(r.out, datasets.ManifestFile)); err != nil {
			return nil
		}
		if have, err := datasets.Shards(r.out); err == nil && len(have) > 0 {
			return fmt.Errorf("%s: %w: its shards were merged", r.out, errMerged)
		}
		return withCode(exitInput, fmt.Errorf("%s has a job that was not cut into shards: choose another --out", r.out))
	}
	have, err := datasets.Shards(r.out)
	if err != nil {
		return withCode(exitInput, err)
	}
	if len(have) == 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(r.out, datasets.ManifestFile)); err == nil {
		return nil // merged: as any job
	}
	return withCode(exitInput,
		fmt.Errorf("%s has shards of a job: run one with --shard %d/%d, make one job of them with %s merge %s, or "+
			"choose another --out",
			r.out, have[0].Index, have[0].Of, callName(), r.out))
}
