#!/usr/bin/env python3
"""Write tests/golden/model: logits of small models, computed in float64 with numpy.

An implementation of its own, straight from the formulas; sheaf's code takes no part. Whole matrices
at once, attention with a mask: as unlike the paged, chunked engine as it can be.

Usage: pip install gguf==0.19.0 numpy && scripts/make_model_golden.py [OUT_DIR]

NAME.bin: int32 count, ids; int32 count, positions; float32 logits [positions][vocabulary].
For the models of scripts/make_tiny_model only the logits are written; the models of the other
families and rope kinds are random, small, and written beside them as NAME.gguf:
  small-llama3  rope_freqs divisors, tied head, biases, head_count_kv as an array
  small-qwen3   q and k norms, YaRN
  small-gemma3  linear scaling on the global layers, two KV groups
  small-fused   fused qkv and gate_up through a description of its own, soft caps, partial rotation
"""
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self.architecture = self.fields["general.architecture"].contents()
        self.tensors = {
            tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            .astype(np.float64).reshape([int(dim) for dim in reversed(tensor.shape)])
            for tensor in reader.tensors
        }
        self.layers = self.get("block_count")
        self.heads = self.get("attention.head_count")
        self.width = self.get("embedding_length")
        kv_heads = self.get("attention.head_count_kv", self.heads)
        self.kv_heads = kv_heads[0] if isinstance(kv_heads, list) else kv_heads
        self.head_dim = self.get("attention.key_length", self.width // self.heads)
        self.epsilon = self.get("attention.layer_norm_rms_epsilon")
        self.is_gemma = self.architecture == "gemma3"

    def get(self, key, default=None):
        field = self.fields.get(f"{self.architecture}.{key}")
        return default if field is None else field.contents()

    def is_global(self, layer):
        return not self.is_gemma or layer % 6 == 5

    def norm(self, x, name):
        mean = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean + self.epsilon) * self.tensors[name]

    def linear(self, x, name):
        bias = self.tensors.get(f"{name}.bias", 0.0)
        return x @ self.tensors[f"{name}.weight"].T + bias


def frequencies(model, layer):
    """(angles per position, factor on cosine and sine)."""
    dims = model.get("rope.dimension_count", model.head_dim)
    is_global = model.is_global(layer)
    base = model.get("rope.freq_base", 10000.0) if is_global else 10000.0
    plain = 1.0 / base ** (np.arange(0, dims, 2) / dims)
    kind = model.get("rope.scaling.type", "none") if is_global else "none"
    gain = 1.0
    if kind == "linear":
        plain = plain / model.get("rope.scaling.factor")
    elif kind == "yarn":
        factor = model.get("rope.scaling.factor")
        context = model.get("rope.scaling.original_context_length")

        def dimension(turns):
            return dims * np.log(context / (turns * 2 * np.pi)) / (2 * np.log(base))

        low, high = max(np.floor(dimension(32)), 0), min(np.ceil(dimension(1)), dims - 1)
        kept = 1 - np.clip((np.arange(dims // 2) - low) / max(high - low, 0.001), 0, 1)
        plain = plain / factor * (1 - kept) + plain * kept
        gain = 0.1 * np.log(factor) + 1
    if "rope_freqs.weight" in model.tensors:
        plain = plain / model.tensors["rope_freqs.weight"]
    return plain, gain


def rotate(model, layer, x):
    """x: [positions, heads, head_dim]."""
    plain, gain = frequencies(model, layer)
    angles = np.arange(x.shape[0])[:, None, None] * plain
    cosine, sine = np.cos(angles) * gain, np.sin(angles) * gain
    pairs = len(plain)
    out = x.copy()
    if model.architecture == "llama":
        first, second = np.s_[..., 0:2 * pairs:2], np.s_[..., 1:2 * pairs:2]
    else:
        first, second = np.s_[..., :pairs], np.s_[..., pairs:2 * pairs]
    out[first] = x[first] * cosine - x[second] * sine
    out[second] = x[first] * sine + x[second] * cosine
    return out


def project(model, layer, x):
    prefix = f"blk.{layer}."
    sizes = np.cumsum([model.heads * model.head_dim, model.kv_heads * model.head_dim])
    if prefix + "attn_qkv.weight" in model.tensors:
        q, k, v = np.split(model.linear(x, prefix + "attn_qkv"), sizes, axis=-1)
    else:
        q, k, v = (model.linear(x, prefix + f"attn_{name}") for name in "qkv")
    q, k, v = (part.reshape(len(x), -1, model.head_dim) for part in (q, k, v))
    if prefix + "attn_q_norm.weight" in model.tensors:
        q = model.norm(q, prefix + "attn_q_norm.weight")
        k = model.norm(k, prefix + "attn_k_norm.weight")
    return rotate(model, layer, q), rotate(model, layer, k), v


def attend(model, layer, x):
    q, k, v = project(model, layer, x)
    groups = model.heads // model.kv_heads
    k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(model.head_dim)
    cap = model.get("attn_logit_softcapping", 0.0)
    if cap:
        scores = cap * np.tanh(scores / cap)
    position = np.arange(len(x))
    hidden = position[None, :] > position[:, None]
    if not model.is_global(layer):
        hidden |= position[None, :] <= position[:, None] - model.get("attention.sliding_window")
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed = np.einsum("hqk,khd->qhd", weights, v).reshape(len(x), -1)
    return model.linear(mixed, f"blk.{layer}.attn_output")


def mlp(model, layer, x):
    prefix = f"blk.{layer}.ffn_"
    if prefix + "gate.weight" in model.tensors:
        gate, up = model.linear(x, prefix + "gate"), model.linear(x, prefix + "up")
    else:
        gate, up = np.split(model.linear(x, prefix + "up"), 2, axis=-1)
    if model.is_gemma:
        inner = np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)
        gate = 0.5 * gate * (1 + np.tanh(inner))
    else:
        gate = gate / (1 + np.exp(-gate))
    return model.linear(gate * up, prefix + "down")


def logits(model, ids):
    residual = model.tensors["token_embd.weight"][ids]
    if model.is_gemma:
        residual = residual * np.sqrt(model.width)
    for layer in range(model.layers):
        prefix = f"blk.{layer}."
        out = attend(model, layer, model.norm(residual, prefix + "attn_norm.weight"))
        if model.is_gemma:
            out = model.norm(out, prefix + "post_attention_norm.weight")
        residual = residual + out
        out = mlp(model, layer, model.norm(residual, prefix + "ffn_norm.weight"))
        if model.is_gemma:
            out = model.norm(out, prefix + "post_ffw_norm.weight")
        residual = residual + out
    hidden = model.norm(residual, "output_norm.weight")
    out = hidden @ model.tensors.get("output.weight", model.tensors["token_embd.weight"]).T
    cap = model.get("final_logit_softcapping", 0.0)
    return cap * np.tanh(out / cap) if cap else out


# --- small models ------------------------------------------------------------------------------


class Writer:
    """A random model; matrices F16, the rest F32."""

    def __init__(self, path, architecture, seed, **shape):
        self.path, self.shape = path, shape
        self.rng = np.random.default_rng(seed)
        self.gguf = gguf.GGUFWriter(path, architecture)
        add = self.gguf.add_uint32
        for key, value in (("block_count", shape["layers"]), ("context_length", 256),
                           ("embedding_length", shape["width"]),
                           ("feed_forward_length", shape["ffn"]),
                           ("attention.head_count", shape["heads"])):
            add(f"{architecture}.{key}", value)
        self.number("attention.layer_norm_rms_epsilon", 1e-5)

    def number(self, key, value):
        add = self.gguf.add_float32 if isinstance(value, float) else self.gguf.add_uint32
        add(f"{self.gguf.arch}.{key}", value)

    def text(self, key, value):
        self.gguf.add_string(f"{self.gguf.arch}.{key}", value)

    def matrix(self, name, rows, length, gain=1.0):
        values = self.rng.normal(size=(rows, length)) * gain / np.sqrt(length)
        self.gguf.add_tensor(name, values.astype(np.float16))

    def vector(self, name, length, centre=0.0, spread=0.5):
        values = centre + spread * self.rng.normal(size=length)
        self.gguf.add_tensor(name, values.astype(np.float32))

    def outer(self, vocabulary=64):
        self.matrix("token_embd.weight", vocabulary, self.shape["width"], 4.0)
        self.vector("output_norm.weight", self.shape["width"], 1.0, 0.1)

    def block(self, layer):
        """Norms and matrices of a layer; q, k, v and gate, up are one each in a fused model."""
        s, prefix = self.shape, f"blk.{layer}."
        q, kv = s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"]
        self.vector(prefix + "attn_norm.weight", s["width"], 1.0, 0.1)
        self.vector(prefix + "ffn_norm.weight", s["width"], 1.0, 0.1)
        self.matrix(prefix + "attn_output.weight", s["width"], q, 2.0)
        self.matrix(prefix + "ffn_down.weight", s["width"], s["ffn"], 2.0)
        if s.get("fused"):
            self.matrix(prefix + "attn_qkv.weight", q + 2 * kv, s["width"], 1.5)
            self.vector(prefix + "attn_qkv.bias", q + 2 * kv)
            self.matrix(prefix + "ffn_up.weight", 2 * s["ffn"], s["width"], 1.5)
            return
        for name, rows in (("attn_q", q), ("attn_k", kv), ("attn_v", kv), ("ffn_gate", s["ffn"]),
                           ("ffn_up", s["ffn"])):
            self.matrix(f"{prefix}{name}.weight", rows, s["width"], 1.5)

    def finish(self):
        self.gguf.write_header_to_file()
        self.gguf.write_kv_data_to_file()
        self.gguf.write_tensors_to_file()
        self.gguf.close()


def small_llama3(path):
    writer = Writer(path, "llama", 11, width=32, layers=2, heads=2, kv_heads=1, head_dim=16, ffn=48)
    writer.gguf.add_array("llama.attention.head_count_kv", [1, 1])
    writer.number("rope.freq_base", 500000.0)
    writer.outer()
    factors = np.array([1, 1, 1, 1.7, 3.1, 8, 8, 8], dtype=np.float32)
    writer.gguf.add_tensor("rope_freqs.weight", factors)
    for layer in range(2):
        writer.block(layer)
        for name, length in (("attn_q", 32), ("attn_k", 16), ("attn_v", 16), ("attn_output", 32),
                             ("ffn_gate", 48), ("ffn_up", 48), ("ffn_down", 32)):
            writer.vector(f"blk.{layer}.{name}.bias", length)
    writer.finish()


def small_qwen3(path):
    writer = Writer(path, "qwen3", 12, width=32, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=48)
    writer.number("attention.head_count_kv", 2)
    writer.number("attention.key_length", 16)
    writer.number("attention.value_length", 16)
    writer.number("rope.freq_base", 100.0)
    writer.text("rope.scaling.type", "yarn")
    writer.number("rope.scaling.factor", 4.0)
    writer.number("rope.scaling.original_context_length", 2000)
    writer.outer()
    writer.matrix("output.weight", 64, 32, 4.0)
    for layer in range(2):
        writer.block(layer)
        writer.vector(f"blk.{layer}.attn_q_norm.weight", 16, 1.5, 0.2)
        writer.vector(f"blk.{layer}.attn_k_norm.weight", 16, 1.5, 0.2)
    writer.finish()


def small_gemma3(path):
    writer = Writer(path, "gemma3", 13, width=32, layers=7, heads=2, kv_heads=1, head_dim=16,
                    ffn=32)
    writer.number("attention.head_count_kv", 1)
    writer.number("attention.key_length", 16)
    writer.number("attention.sliding_window", 24)
    writer.number("rope.freq_base", 1000000.0)
    writer.text("rope.scaling.type", "linear")
    writer.number("rope.scaling.factor", 8.0)
    writer.outer()
    for layer in range(7):
        writer.block(layer)
        prefix = f"blk.{layer}."
        writer.vector(prefix + "attn_q_norm.weight", 16, 1.5, 0.2)
        writer.vector(prefix + "attn_k_norm.weight", 16, 1.5, 0.2)
        writer.vector(prefix + "post_attention_norm.weight", 32, 10.0, 1.0)
        writer.vector(prefix + "post_ffw_norm.weight", 32, 10.0, 1.0)
    writer.finish()


def small_fused(path):
    writer = Writer(path, "fused", 14, width=48, layers=2, heads=3, kv_heads=1, head_dim=16, ffn=40,
                    fused=True)
    writer.number("attention.head_count_kv", 1)
    writer.number("rope.dimension_count", 12)
    writer.number("attn_logit_softcapping", 3.0)
    writer.number("final_logit_softcapping", 5.0)
    writer.outer()
    for layer in range(2):
        writer.block(layer)
    writer.finish()


SMALL = {"small-llama3": small_llama3, "small-qwen3": small_qwen3, "small-gemma3": small_gemma3,
         "small-fused": small_fused}
TINY = ("tiny-llama", "tiny-qwen2", "tiny-gemma3", "tiny-types")
POSITIONS = [0, 1, 2, 63, 64, 65, 100, 129]


def write_golden(path, model_path):
    model = Model(model_path)
    vocabulary = len(model.tensors["token_embd.weight"])
    ids = np.random.default_rng(7).integers(0, vocabulary, 130).astype(np.int32)
    positions = np.array(POSITIONS, dtype=np.int32)
    with open(path, "wb") as out:
        for numbers in (ids, positions):
            out.write(np.int32(len(numbers)).tobytes() + numbers.tobytes())
        out.write(logits(model, ids)[positions].astype(np.float32).tobytes())


def main():
    out = ROOT / "tests/golden/model"
    if len(sys.argv) > 1:
        out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, make in SMALL.items():
        make(out / f"{name}.gguf")
        write_golden(out / f"{name}.bin", out / f"{name}.gguf")
    with tempfile.TemporaryDirectory() as tiny:
        subprocess.run([sys.executable, ROOT / "scripts/make_tiny_model", tiny], check=True)
        for name in TINY:
            write_golden(out / f"{name}.bin", pathlib.Path(tiny) / f"{name}.gguf")


if __name__ == "__main__":
    main()
