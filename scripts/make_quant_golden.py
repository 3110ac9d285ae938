#!/usr/bin/env python3
"""Write tests/golden/quant/TYPE.bin: blocks of every tensor type and what they unpack to.

The oracle is the PyPI package `gguf` (the files in the repository were made with gguf 0.19.0 and
numpy 2.4.6); sheaf's own code takes no part. Half of the blocks are quantised normal numbers where
the package can quantise the type; the others are random bytes with finite scales of both signs,
denormal ones among them. One file: u32 block count, the blocks, the float32 values.

Usage: pip install gguf==0.19.0 && scripts/make_quant_golden.py [OUT_DIR]
"""
import pathlib
import struct
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

SEED = 20240229
# The offsets of the fp16 fields in a block, whose random bytes must not make infinities or NaN.
HALF_FIELDS = {
    Type.F16: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2],
    Type.Q8_0: [0], Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2],
    Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.BF16: [], Type.F32: [],
}
BLOCKS = {1: 256, 32: 16, 256: 6}  # by values in a block


def random_blocks(rng, kind, count, block_bytes):
    blocks = rng.integers(0, 256, (count, block_bytes), dtype=np.uint8)
    for offset in HALF_FIELDS[kind]:
        halves = (rng.normal(size=count) * 0.05).astype(np.float16)
        halves[0] = np.float16(3e-7)  # a denormal half
        halves[1] = np.float16(-65504)
        blocks[:, offset:offset + 2] = halves.view(np.uint8).reshape(count, 2)
    if kind in (Type.F32, Type.BF16):  # any finite number: clear the exponent's top bit
        blocks[:, block_bytes - 1] &= 0xBF
    return blocks


def golden(kind):
    rng = np.random.default_rng(SEED + int(kind))
    block_values, block_bytes = GGML_QUANT_SIZES[kind]
    count = BLOCKS[block_values]
    blocks = random_blocks(rng, kind, count, block_bytes)
    numbers = rng.normal(size=(count // 2, block_values)).astype(np.float32)
    try:
        quantised = quantize(numbers, kind).view(np.uint8).reshape(count // 2, block_bytes)
        blocks[count - count // 2:] = quantised
    except NotImplementedError:
        pass  # the package only reads this type
    values = dequantize(blocks.reshape(-1) if block_values > 1 else plain(blocks, kind), kind)
    return count, blocks.tobytes(), np.ascontiguousarray(values, dtype="<f4").tobytes()


def plain(blocks, kind):
    """The package wants float types as arrays of their own kind."""
    views = {Type.F32: np.float32, Type.F16: np.float16}
    flat = blocks.reshape(-1)
    return flat.view(views[kind]) if kind in views else flat


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "tests/golden/quant"
    out.mkdir(parents=True, exist_ok=True)
    for kind in HALF_FIELDS:
        count, blocks, values = golden(kind)
        (out / f"{kind.name}.bin").write_bytes(struct.pack("<I", count) + blocks + values)


if __name__ == "__main__":
    main()
