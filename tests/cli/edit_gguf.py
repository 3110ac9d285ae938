#!/usr/bin/env python3
"""Damages a tiny model in a chosen way.

    edit_gguf.py poison IN OUT TOKEN_ID    the F32 embedding of one token becomes NaN
"""

import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, ALIGNMENT = 8, 9, 32


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return value

    def string(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8", "replace")

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            kind, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(kind)
        else:
            self.at += SIZES[kind]


def tensors(data):
    """name → (dims, type, offset in the file)."""
    reader = Reader(data)
    reader.at = 8
    tensor_count, value_count = reader.number("Q"), reader.number("Q")
    for _ in range(value_count):
        reader.string()
        reader.skip(reader.number("I"))
    found = {}
    for _ in range(tensor_count):
        name = reader.string()
        dims = [reader.number("Q") for _ in range(reader.number("I"))]
        found[name] = (dims, reader.number("I"), reader.number("Q"))
    start = -(-reader.at // ALIGNMENT) * ALIGNMENT
    return {name: (dims, kind, start + offset) for name, (dims, kind, offset) in found.items()}


def poison(data, token):
    dims, kind, offset = tensors(data)["token_embd.weight"]
    if kind != 0:
        sys.exit("the embeddings are not F32")
    row = dims[0] * 4
    place = offset + token * row
    data[place:place + row] = struct.pack("<f", float("nan")) * dims[0]


def main(action, source, target, token):
    with open(source, "rb") as file:
        data = bytearray(file.read())
    {"poison": poison}[action](data, int(token))
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
