"""Training examples as arrays of ids, made by many processes."""

import multiprocessing
import random

import numpy as np
from tokenizers import Tokenizer

import tasks

SHORT, LONG = 96, 320  # ids of an example
WORKERS, ROWS = 15, 50000


def make(job):
    """Returns ids [n, length], the length of each example and of its prompt."""
    seed, n, length, path = job
    tokenizer, draw = Tokenizer.from_file(path), random.Random(seed)
    prompts, whole = [], []
    for _ in range(n):
        system, user, answer = tasks.long_ticket(draw) if length == LONG else tasks.sample(draw)[1:]
        prompts.append(tasks.chat(system, user))
        whole.append(tasks.chat(system, user, answer) + "<|user|>")
    ids = np.zeros((n, length), np.int16)
    lengths, prompt_lengths = np.zeros(n, np.int16), np.zeros(n, np.int16)
    encode = lambda texts: tokenizer.encode_batch(texts, add_special_tokens=False)
    for i, (prompt, full) in enumerate(zip(encode(prompts), encode(whole))):
        row = full.ids[:length]
        ids[i, : len(row)] = row
        lengths[i], prompt_lengths[i] = len(row), min(len(prompt.ids), length)
    return ids, lengths, prompt_lengths


def make_all(path):
    """Returns short and long examples; those that were cut off are left out."""
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        short = pool.map(make, [(100 + i, ROWS, SHORT, path) for i in range(WORKERS)])
        long = pool.map(make, [(900 + i, ROWS // 16, LONG, path) for i in range(WORKERS)])

    def whole(parts, length):
        arrays = [np.concatenate(column) for column in zip(*parts)]
        keep = arrays[1] < length
        return [a[keep] for a in arrays]

    return whole(short, SHORT), whole(long, LONG)
