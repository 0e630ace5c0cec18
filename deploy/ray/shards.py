"""Runs a job's shards with Ray Data: a shard is a row, a machine takes the next.

    python deploy/ray/shards.py --shards 8 --gpus 8 -- prompts.parquet --model /models/GLM-5-NVFP4 --out /data/job

A shard whose machine is lost is run again by Ray, and goes on where it was, as OUT is a
folder or bucket that all machines see. At the end the shards are merged.
"""

import argparse
import subprocess
import sys

import ray


def run(row, program, arguments):
    command = [program, "run", *arguments, "--shard", row["shard"], "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 75:  # interrupted: saved, so Ray may try again
        raise RuntimeError(done.stderr)
    return {"shard": row["shard"], "code": done.returncode, "says": done.stderr}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shards", type=int, required=True)
    p.add_argument("--gpus", type=float, default=0)
    p.add_argument("--cpus", type=float, default=1)
    p.add_argument("--program", default="glmbatch")
    p.add_argument("arguments", nargs="+")
    o = p.parse_args()
    ray.init(log_to_driver=False)
    shards = ray.data.from_items([{"shard": f"{i}/{o.shards}"} for i in range(o.shards)], override_num_blocks=o.shards)
    rows = shards.map(run, fn_kwargs={"program": o.program, "arguments": o.arguments}, num_cpus=o.cpus, num_gpus=o.gpus,
                      max_retries=3, retry_exceptions=True).take_all()
    for r in sorted(rows, key=lambda r: int(r["shard"].split("/")[0])):
        print(r["shard"], "exit code", r["code"], r["says"].strip())
    if any(r["code"] not in (0, 8) for r in rows):
        sys.exit("not all shards are complete")
    sys.exit(subprocess.run([o.program, "merge", o.arguments[o.arguments.index("--out") + 1]]).returncode)


if __name__ == "__main__":
    main()
