"""transformers in its own environment: left-padded batches in bf16 through generate(), greedy."""

import bench_runner
import torch
import transformers

PADDING = 0


class Engine:
    def __init__(self, configuration):
        torch.set_num_threads(configuration["threads"])
        self.batch_size = configuration["batch_size"]
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            configuration["model"], dtype=torch.bfloat16, attn_implementation="sdpa"
        ).eval()
        self.model.generation_config.eos_token_id = None  # else it fills in for a None below

    def generate(self, batch, new_tokens):
        length = max(len(ids) for ids in batch)
        padded = [[PADDING] * (length - len(ids)) + ids for ids in batch]
        mask = [[0] * (length - len(ids)) + [1] * len(ids) for ids in batch]
        settings = transformers.GenerationConfig(
            max_new_tokens=new_tokens, do_sample=False, eos_token_id=None, pad_token_id=PADDING
        )
        output = self.model.generate(
            torch.tensor(padded), attention_mask=torch.tensor(mask), generation_config=settings
        )
        return output[:, length:].tolist()


def answer(engine, prompts, new_tokens):
    ids = []
    with torch.inference_mode():
        for first in range(0, len(prompts), engine.batch_size):
            ids += engine.generate(prompts[first : first + engine.batch_size], new_tokens)
    return ids, None


bench_runner.serve(Engine, answer)
