"""One decode step of a few layers at the shapes of one of GLM-5's eight ranks, in plain
PyTorch under a CUDA graph: what the same layers cost without kernels of their own.

Weights are BF16 and random, the latent cache FP8, of which a row's selected entries
are gathered and cast (never the whole pool). There is no indexer and no collective.
Beside it: glmbatch bench --config glm-5 --layers N --set first_k_dense_replace=0
--tp 8 --ranks 1 --kv-cache fp8 --batch 1 --context 1536. Prints JSON.

With --glmbatch PROGRAM it prints a table instead: the products of prefills of --rows
tokens by PROGRAM's bench, a rank of eight, each beside torch.matmul or, of experts,
torch._grouped_mm on BF16 weights at the same shape, in one run (needs pyarrow). Ours
are from the timeline: with packing of their rows, and experts' sums over a token's
choices; in float32, by FP4 experts.
"""
import argparse, json, statistics, subprocess, tempfile
from collections import defaultdict

import torch
import torch.nn.functional as F

HIDDEN, HEADS, NOPE, ROPE, VALUE = 6144, 8, 192, 64, 256
QUERY, LATENT = 2048, 512
ROUTED, HELD, CHOSEN, INNER = 256, 64, 8, 256  # a GPU holds HELD experts a layer here, in BF16
VOCAB = 19360


def matrix(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02


def norm(x, w):
    return F.rms_norm(x, (x.shape[-1],), w, 1e-5)


def rotate(x, table):
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * table[0] - b * table[1], b * table[0] + a * table[1]), -1).flatten(-2)


class Layer:
    def __init__(self, slots):
        self.norms = [matrix(HIDDEN) + 1, matrix(HIDDEN) + 1, matrix(QUERY) + 1, matrix(LATENT) + 1]
        self.front = matrix(QUERY + LATENT + ROPE, HIDDEN)
        self.query = matrix(HEADS * (NOPE + ROPE), QUERY)
        self.absorb, self.values = matrix(HEADS, NOPE, LATENT), matrix(HEADS, LATENT, VALUE)
        self.out = matrix(HIDDEN, HEADS * VALUE)
        self.router = matrix(ROUTED, HIDDEN).float()
        self.up, self.down = matrix(HELD, 2 * INNER, HIDDEN), matrix(HELD, HIDDEN, INNER)
        self.shared_up, self.shared_down = matrix(2 * INNER, HIDDEN), matrix(HIDDEN, INNER)
        self.pool = torch.empty(slots, LATENT + ROPE, device="cuda", dtype=torch.float8_e4m3fn)
        for part in self.pool.split(1 << 16):
            part.copy_(torch.randn(part.shape, device="cuda") * 0.5)

    def attention(self, h, table, slots):
        x = norm(h, self.norms[0])
        q, kv, rope = F.linear(x, self.front).split((QUERY, LATENT, ROPE), -1)
        entry = torch.cat((norm(kv, self.norms[3]), rotate(rope[:, None], table)[:, 0]), -1)
        self.pool[slots[:, -1]] = entry.to(self.pool.dtype)
        q = F.linear(norm(q, self.norms[2]), self.query).unflatten(-1, (HEADS, NOPE + ROPE))
        q = torch.cat((torch.einsum("bhn,hnl->bhl", q[..., :NOPE], self.absorb), rotate(q[..., NOPE:], table)), -1)
        k = self.pool[slots].to(q.dtype)
        p = torch.softmax(torch.einsum("bhl,btl->bht", q, k).float() / 16, -1).to(q.dtype)
        o = torch.einsum("bhl,hlv->bhv", torch.einsum("bht,btl->bhl", p, k[..., :LATENT]), self.values)
        return h + F.linear(o.flatten(1), self.out)

    def mixture(self, h):
        x = norm(h, self.norms[1])
        scores, chosen = F.linear(x.float(), self.router).sigmoid().topk(CHOSEN, -1)
        scores = scores / scores.sum(-1, keepdim=True) * 2.5
        chosen = chosen % HELD
        gate, up = torch.einsum("bh,beih->bei", x, self.up[chosen]).chunk(2, -1)
        y = torch.einsum("bei,behi->beh", F.silu(gate) * up, self.down[chosen])
        gate, up = F.linear(x, self.shared_up).chunk(2, -1)
        return h + (y * scores[..., None]).sum(1).to(h.dtype) + F.linear(F.silu(gate) * up, self.shared_down)


def timed(calls):
    """Median us of a call; of several, which have buffers of their own: caches do not hold them."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        calls[0]()
    torch.cuda.synchronize()
    graph, times = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    for n in range(6):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if n > 0:
            times.append(start.elapsed_time(end) * 1000 / len(calls))
    return statistics.median(times)


def copies(nbytes):
    return max(1, min(6, int(2e8 / nbytes)))


def products(m, n, k):
    x = matrix(m, k)
    ws = [matrix(n, k) for _ in range(copies(2 * n * k))]
    y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return timed([lambda w=w: torch.matmul(x, w.t(), out=y) for w in ws * 2])


def experts(rows, n, k, groups):
    chosen = torch.randint(groups, (rows,), device="cuda")
    ends = torch.bincount(chosen, minlength=groups).cumsum(0).to(torch.int32)
    x, w = matrix(rows, k), matrix(groups, n, k)
    return timed([lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends)] * 2)


def bench(program, rows, options):
    """Median us of each product of a prefill, by kernel and shape."""
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/bench.parquet"
        command = [program, "bench", "--config", "glm-5", "--tp", "8", "--ranks", "1", "--layers", "5", "--device", "cuda",
                   "--batch", "0", "--prefill", str(rows), "--chunk", str(rows), "--kv-cache", "fp8", "--timeline", path]
        done = subprocess.run(command + options, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        times = defaultdict(list)
        for s in pyarrow.parquet.read_table(path).to_pylist():
            if s["kernel"].startswith(("gemm_bf16", "gemm_fp8", "moe_up", "moe_down")) and s["m"] > 1:
                key = s["kernel"], s["m"], s["n"], s["k"], s["top_k"]
                times[key].append((s["end_ns"] - s["start_ns"]) / 1000)
    return {key: statistics.median(v) for key, v in times.items()}


def beside(program, rows, options):
    print(f"{'kernel':14} {'rows':>6} {'N':>6} {'K':>6} {'ours us':>9} {'TFLOP/s':>8} {'torch us':>9} {'TFLOP/s':>8} {'ratio':>6}")
    for m in rows:
        for (kernel, m, n, k, top), us in sorted(bench(program, m, options).items()):
            pairs, wide = m * max(1, top), n * (2 if kernel.startswith("moe_up") else 1)
            torch_us = experts(pairs, wide, k, ROUTED) if top else products(m, n, k)
            flops = 2e-6 * pairs * wide * k
            print(f"{kernel:14} {m:6} {n:6} {k:6} {us:9.1f} {flops / us:8.0f} {torch_us:9.1f} {flops / torch_us:8.0f} "
                  f"{torch_us / us:6.2f}", flush=True)
            torch.cuda.empty_cache()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--context", type=int, default=1536, help="entries that a row attends to")
    p.add_argument("--slots", type=int, default=494976, help="entries of a layer's pool")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--glmbatch", help="the program whose products are timed beside PyTorch's")
    p.add_argument("--rows", default="256,512,2048,8192", help="with --glmbatch: tokens of prefills")
    p.add_argument("--activations", default="bf16", help="with --glmbatch: bench's")
    a = p.parse_args()
    torch.manual_seed(0)
    if a.glmbatch:
        return beside(a.glmbatch, [int(m) for m in a.rows.split(",")], ["--activations", a.activations])
    layers = [Layer(a.slots) for _ in range(a.layers)]
    embedding, head = matrix(1024, HIDDEN), matrix(VOCAB, HIDDEN)
    table = torch.rand(2, 1, 1, ROPE // 2, device="cuda", dtype=torch.bfloat16).unbind(0)
    slots = torch.randint(a.slots, (a.batch, a.context), device="cuda")
    tokens = torch.arange(a.batch, device="cuda")

    def step():
        h = embedding[tokens]
        for l in layers:
            h = l.mixture(l.attention(h, table, slots))
        return F.linear(norm(h, layers[0].norms[0]), head).argmax(-1)

    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        times = []
        for n in range(a.steps + 5):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            if n >= 5:
                times.append(start.elapsed_time(end))
    step_us = statistics.median(times) * 1000
    print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "layers": a.layers, "batch": a.batch,
                      "context": a.context, "step_us": round(step_us, 1), "layer_us": round(step_us / a.layers, 1)}))


main()
