"""OpenVINO's own form of an F16 GGUF, made by its own reader: bench_make_ir.py F16.gguf FOLDER"""

import sys
from pathlib import Path

import openvino_genai

source, folder = Path(sys.argv[1]), Path(sys.argv[2])
openvino_genai.LLMPipeline(source, "CPU", enable_save_ov_model=True)
for path in source.parent.glob("openvino_*"):
    path.rename(folder / path.name)
