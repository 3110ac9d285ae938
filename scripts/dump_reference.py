#!/usr/bin/env python3
"""Logits of a GGUF model by PyTorch and transformers in float32, to hold sheaf's reference against.

Usage: pip install gguf numpy torch transformers
       scripts/dump_reference.py MODEL.gguf OUT_DIR [--tokens N] [--ids FILE]

Writes OUT_DIR/model.gguf (a link), ids.bin (int32) and logits.bin (float32, [ids][vocabulary]).
Without --ids the ids are random: every row of every matrix takes part, and no tokenizer is needed.
The weights are dequantised by the package `gguf`; sheaf's own code takes no part. Then
  SHEAF_ORACLE=OUT_DIR build/dev/test_core_engine --filter 'oracle/*'
compares. Families: llama, qwen2, qwen3, gemma3.
"""
import argparse
import pathlib

import gguf
import numpy as np
import torch
import transformers

NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm",
}
GEMMA_NAMES = {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
CLASSES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM"), "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM"),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM"),
}


class Metadata:
    def __init__(self, reader):
        self.reader = reader
        self.architecture = reader.fields["general.architecture"].contents()

    def get(self, key, default=None):
        field = self.reader.fields.get(f"{self.architecture}.{key}")
        return default if field is None else field.contents()


def make_config(metadata, tensor_names, vocabulary):
    heads, width = metadata.get("attention.head_count"), metadata.get("embedding_length")
    base = metadata.get("rope.freq_base", 10000.0)
    shared = dict(
        hidden_size=width, intermediate_size=metadata.get("feed_forward_length"),
        num_hidden_layers=metadata.get("block_count"), num_attention_heads=heads,
        num_key_value_heads=metadata.get("attention.head_count_kv", heads),
        head_dim=metadata.get("attention.key_length", width // heads),
        rms_norm_eps=metadata.get("attention.layer_norm_rms_epsilon"), vocab_size=vocabulary,
        max_position_embeddings=metadata.get("context_length"), attention_dropout=0.0,
        tie_word_embeddings="output.weight" not in tensor_names,
        rope_parameters={"rope_type": "default", "rope_theta": base},
        attn_implementation="eager",
    )
    if metadata.architecture == "gemma3":
        local = metadata.get("rope.freq_base_swa", 10000.0)
        shared["rope_parameters"] = {
            "full_attention": {"rope_type": "default", "rope_theta": base},
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        }
        shared.update(
            sliding_window=metadata.get("attention.sliding_window"),
            query_pre_attn_scalar=shared["head_dim"], sliding_window_pattern=6,
            layer_types=["full_attention" if (i + 1) % 6 == 0 else "sliding_attention"
                         for i in range(shared["num_hidden_layers"])])
    return getattr(transformers, CLASSES[metadata.architecture][0])(**shared)


def hugging_face_tensor(metadata, tensor):
    """(name, values) as transformers has them: llama's q and k unpermuted, gemma's norms less 1."""
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    values = values.reshape([int(dim) for dim in reversed(tensor.shape)])
    parts = tensor.name.split(".")
    if parts[0] == "blk":
        names = {**NAMES, **(GEMMA_NAMES if metadata.architecture == "gemma3" else {})}
        name = f"model.layers.{parts[1]}.{names[parts[2]]}.{parts[3]}"
    else:
        name = f"{OUTER[parts[0]]}.{parts[1]}"
    if metadata.architecture == "llama" and parts[2:3] in (["attn_q"], ["attn_k"]):
        heads = metadata.get("attention.head_count")
        count = heads if parts[2] == "attn_q" else metadata.get("attention.head_count_kv", heads)
        values = values.reshape(count, -1, 2, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
    if metadata.architecture == "gemma3" and "norm" in name:
        values = values - np.float32(1)
    return name, torch.from_numpy(np.ascontiguousarray(values))


def load(path):
    reader = gguf.GGUFReader(path)
    metadata = Metadata(reader)
    state = dict(hugging_face_tensor(metadata, tensor) for tensor in reader.tensors)
    vocabulary = state["model.embed_tokens.weight"].shape[0]
    config = make_config(metadata, {tensor.name for tensor in reader.tensors}, vocabulary)
    model = getattr(transformers, CLASSES[metadata.architecture][1])(config).float().eval()
    result = model.load_state_dict(state, strict=False)
    missing = [name for name in result.missing_keys if name != "lm_head.weight"]
    if missing or result.unexpected_keys:
        raise SystemExit(f"not understood: missing {missing}, left over {result.unexpected_keys}")
    return model, vocabulary


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--ids", help="int32 ids instead of random ones")
    arguments = parser.parse_args()
    model, vocabulary = load(arguments.model)
    ids = np.random.default_rng(1).integers(0, vocabulary, arguments.tokens).astype(np.int32)
    if arguments.ids:
        ids = np.fromfile(arguments.ids, dtype=np.int32)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids.astype(np.int64))[None]).logits[0].numpy()
    arguments.out.mkdir(parents=True, exist_ok=True)
    link = arguments.out / "model.gguf"
    link.unlink(missing_ok=True)
    link.symlink_to(arguments.model.resolve())
    ids.tofile(arguments.out / "ids.bin")
    logits.astype(np.float32).tofile(arguments.out / "logits.bin")


if __name__ == "__main__":
    main()
