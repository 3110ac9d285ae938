"""OpenVINO GenAI in its own environment: continuous batching, greedy, prefix caching on.

A prefix is shared only once the request that computed it has ended, so with "is_staggered" the
first request goes ahead alone.
"""

import bench_runner
import numpy
import openvino
import openvino_genai


def scheduler(configuration):
    settings = openvino_genai.SchedulerConfig()
    settings.cache_size = configuration["kv_gib"]
    settings.max_num_seqs = configuration["sequences"]
    settings.max_num_batched_tokens = configuration["batch_tokens"]
    settings.dynamic_split_fuse = True
    settings.enable_prefix_caching = True
    return settings


class Engine:
    def __init__(self, configuration):
        properties = {
            "INFERENCE_PRECISION_HINT": configuration["precision"],
            "INFERENCE_NUM_THREADS": configuration["threads"],
            "KV_CACHE_PRECISION": configuration["kv"],
        }
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(
            configuration["model"], scheduler(configuration), "CPU", properties
        )
        self.is_staggered = configuration["is_staggered"]
        self.request_count = 0

    def add(self, ids, new_tokens):
        generation = openvino_genai.GenerationConfig()
        generation.max_new_tokens = generation.min_new_tokens = new_tokens
        generation.ignore_eos = True
        generation.do_sample = False
        self.request_count += 1
        prompt = openvino.Tensor(numpy.array([ids], dtype=numpy.int64))
        return self.pipeline.add_request(self.request_count, prompt, generation)

    def finish(self):
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()


def answer(engine, prompts, new_tokens):
    handles = []
    for ids in prompts:
        handles.append(engine.add(ids, new_tokens))
        if engine.is_staggered and len(handles) == 1:
            engine.finish()
    engine.finish()
    return [list(handle.read_all()[0].generated_ids) for handle in handles], None


bench_runner.serve(Engine, answer)
