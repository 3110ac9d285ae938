"""A GGUF's weights, dequantised for engines that cannot read its types.

    bench_convert.py MODEL.gguf FOLDER huggingface|f16

Runs inside a rival's virtual environment (numpy, gguf). "huggingface" writes bf16 safetensors
with a config.json, "f16" a GGUF whose matrices are F16. Both carry vocabulary.json: the bytes of
every token, so that nobody needs another tokenizer to read what was generated. Families: llama
(with the row permutation of its q and k undone) and qwen2.
"""

import json
import struct
import sys
from pathlib import Path

import gguf
import numpy as np

CONTROL = gguf.TokenType.CONTROL
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


class Model:
    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.family = self.field("general.architecture")
        if self.family not in CLASSES:
            raise SystemExit(f"bench_convert: no conversion for the family '{self.family}'")

    def field(self, name, default=None):
        field = self.reader.get_field(name)
        return default if field is None else field.contents()

    def size(self, name):
        return self.field(f"{self.family}.{name}")

    def tensors(self):
        """Name and float32 values in rows."""
        for tensor in self.reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            shape = [int(size) for size in reversed(tensor.shape)]
            yield tensor.name, np.ascontiguousarray(values, dtype=np.float32).reshape(shape)


def huggingface_name(name):
    parts = name.split(".")
    if parts[0] == "blk":
        return ".".join(["model.layers", parts[1], TENSORS[parts[2]], parts[3]])
    return f"{TENSORS[parts[0]]}.{parts[1]}"


def restored_rows(model, name, values):
    """llama's q and k rows lie in rotary pairs in a GGUF, in rotary halves elsewhere."""
    heads = {"attn_q": model.size("attention.head_count")}
    heads["attn_k"] = model.size("attention.head_count_kv")
    count = heads.get(name.split(".")[-2])
    if model.family != "llama" or count is None:
        return values
    pairs = values.reshape(count, values.shape[0] // count // 2, 2, -1)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)


def bf16_bytes(values):
    """Rounded to nearest, ties to even."""
    bits = values.view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded >> 16).astype("<u2").tobytes()


def write_safetensors(path, tensors):
    header, offset, parts = {"__metadata__": {"format": "pt"}}, 0, []
    for name, values in tensors:
        data = bf16_bytes(values)
        header[name] = {
            "dtype": "BF16",
            "shape": list(values.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        offset += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.writelines(parts)


def config(model, is_tied):
    end = model.field("tokenizer.ggml.eos_token_id")
    heads, width = model.size("attention.head_count"), model.size("embedding_length")
    return {
        "architectures": [CLASSES[model.family]],
        "model_type": model.family,
        "hidden_size": width,
        "intermediate_size": model.size("feed_forward_length"),
        "num_hidden_layers": model.size("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": model.size("attention.head_count_kv"),
        "head_dim": width // heads,
        "rms_norm_eps": model.size("attention.layer_norm_rms_epsilon"),
        "rope_theta": model.size("rope.freq_base"),
        "vocab_size": len(model.field("tokenizer.ggml.tokens")),
        "max_position_embeddings": model.size("context_length"),
        "tie_word_embeddings": is_tied,
        "bos_token_id": model.field("tokenizer.ggml.bos_token_id", end),
        "eos_token_id": end,
        "pad_token_id": model.field("tokenizer.ggml.padding_token_id", end),
        "hidden_act": "silu",
        "dtype": "bfloat16",
    }


def write_huggingface(model, folder):
    tensors = [
        (huggingface_name(name), restored_rows(model, name, values))
        for name, values in model.tensors()
    ]
    write_safetensors(folder / "model.safetensors", tensors)
    is_tied = all(name != "lm_head.weight" for name, _ in tensors)
    text = json.dumps(config(model, is_tied))
    (folder / "config.json").write_text(text, encoding="utf-8")


def write_f16(model, folder):
    writer = gguf.GGUFWriter(folder / "model.gguf", model.family)
    for field in model.reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        if field.name == "general.file_type":
            continue
        kind = field.types[0]
        item = field.types[1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, item)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for name, values in model.tensors():
        writer.add_tensor(name, values.astype(np.float16) if values.ndim == 2 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def byte_letters():
    """The letters in which a byte-level vocabulary spells the bytes 0 to 255: letter → byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {chr(byte): byte for byte in printable}
    hidden = (byte for byte in range(256) if byte not in printable)
    letters.update({chr(256 + index): byte for index, byte in enumerate(hidden)})
    return letters


def write_vocabulary(model, folder):
    """Each token's bytes in hexadecimal; nothing for control tokens, which print as nothing."""
    if model.field("tokenizer.ggml.model") != "gpt2":
        raise SystemExit("bench_convert: only byte-level vocabularies are read")
    letters = byte_letters()
    tokens = model.field("tokenizer.ggml.tokens")
    kinds = model.field("tokenizer.ggml.token_type")
    spelled = []
    for token, kind in zip(tokens, kinds):
        is_spelled = all(letter in letters for letter in token)
        plain = bytes(letters[letter] for letter in token) if is_spelled else token.encode()
        spelled.append("" if kind == CONTROL else plain.hex())
    (folder / "vocabulary.json").write_text(json.dumps(spelled), encoding="utf-8")


def main():
    model, folder, form = Model(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    write_vocabulary(model, folder)
    {"huggingface": write_huggingface, "f16": write_f16}[form](model, folder)


if __name__ == "__main__":
    main()
