"""Writes the demo's prompts.parquet: 1,000 tasks that training has not drawn (its seeds are 1, 100 to 114
and 900 to 914). Run: training/prompts.py FILE"""

import random
import sys

import pyarrow as pa
import pyarrow.parquet as pq

import tasks

SEED, ROWS = 20261129, 1000


def main(path):
    draw = random.Random(SEED)
    rows = [tasks.sample(draw) for _ in range(ROWS)]
    table = pa.table(
        {
            "id": [f"demo-{i:04d}" for i in range(ROWS)],
            "task": [task for task, _, _, _ in rows],
            "system": pa.array([system for _, system, _, _ in rows], pa.string()),
            "prompt": [prompt for _, _, prompt, _ in rows],
            "expected": [answer for _, _, _, answer in rows],
        }
    )
    pq.write_table(table, path, compression="zstd", compression_level=19)


main(sys.argv[1])
