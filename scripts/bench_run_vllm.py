"""vLLM, offline, in its own environment: all prompts at once, greedy, prefix caching on."""

import bench_runner


def load(configuration):
    from vllm import LLM

    return LLM(
        model=configuration["model"],
        dtype="bfloat16",
        skip_tokenizer_init=True,
        max_model_len=configuration["context"],
        max_num_seqs=configuration["sequences"],
        max_num_batched_tokens=configuration["batch_tokens"],
        enable_prefix_caching=True,
        enforce_eager=configuration["is_eager"],
        seed=0,
    )


def answer(engine, prompts, new_tokens):
    from vllm import SamplingParams

    engine.reset_prefix_cache()
    sampling = SamplingParams(
        temperature=0, max_tokens=new_tokens, ignore_eos=True, detokenize=False
    )
    inputs = [{"prompt_token_ids": ids} for ids in prompts]
    outputs = engine.generate(inputs, sampling, use_tqdm=False)
    total = sum(len(output.prompt_token_ids) for output in outputs)
    cached = sum(output.num_cached_tokens or 0 for output in outputs)
    return [list(output.outputs[0].token_ids) for output in outputs], total - cached


if __name__ == "__main__":  # its workers import this file again
    bench_runner.serve(load, answer)
