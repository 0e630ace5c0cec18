"""Compress model.safetensors for ../model. zstd finds little in BF16 values as
they lie, so the low bytes of all go before the high ones, and each part is a
frame of its own. Where the values begin and end comes first, as 64-bit numbers."""

import json
import struct
import subprocess
import sys


def zstd(part):
    return subprocess.run(["zstd", "-19", "-c"], input=part, capture_output=True, check=True).stdout


raw = open(sys.argv[1], "rb").read()
(size,) = struct.unpack_from("<Q", raw)
at = 8 + size
spans = [t["data_offsets"] for t in json.loads(raw[8:at]).values() if t.get("dtype") == "BF16"]
start, end = at + min(s[0] for s in spans), at + max(s[1] for s in spans)
assert sum(b - a for a, b in spans) == end - start, "other tensors lie among those of BF16"
values = raw[start:end]
parts = struct.pack("<QQ", start, end) + raw[:start], values[0::2], values[1::2], raw[end:]
open(sys.argv[2], "wb").write(b"".join(zstd(p) for p in parts))
