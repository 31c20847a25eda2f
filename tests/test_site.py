"""The site around the chapters: what the search finds first, what a page weighs, moves and fails to tell, and that its links live.

`make html` first. One visit for each kind of page.
"""
import html
import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import built
from built import DESK, HTML, PHONE, compressed

# What people type, and the page that they should find first; written down before the search was asked. The first 32 are counted.
QUERIES = {
    "tensor parallelism": "chapters/15", "MoE": "chapters/18", "allreduce": "chapters/11", "all-reduce": "chapters/11",
    "HBM bandwidth H100": "appendices/hardware", "ZeRO": "chapters/20", "FSDP": "chapters/20", "sequence parallelism": "chapters/15",
    "expert parallelism": "chapters/18", "ring attention": "chapters/17", "data parallel": "chapters/14", "alpha-beta model": "chapters/04",
    "NVLink bandwidth": "appendices/hardware", "attention flops": "chapters/01", "overlap communication": "chapters/31-",
    "B200": "appendices/hardware", "chinchilla": "chapters/08", "zero bubble": "chapters/16", "roofline": "chapters/02",
    "pipeline bubble": "chapters/16", "critical batch size": "chapters/10", "DualPipe": "chapters/31a", "checkpoint interval": "chapters/26",
    "MFU": "chapters/01", "KV cache": "chapters/31b", "speculative decoding": "chapters/31b", "fp8": "chapters/30",
    "gradient accumulation": "chapters/14", "activation checkpointing": "chapters/21", "straggler": "chapters/29", "DiLoCo": "chapters/29",
    "PowerSGD": "chapters/28",
    "GRPO": "chapters/36a", "context parallelism": "chapters/17", "mixture of experts": "chapters/18", "flash attention": "chapters/17",
    "learning rate": "chapters/10", "batch size": "chapters/10", "pipeline": "chapters/16", "gradient checkpointing": "chapters/21",
    "NVLink": "chapters/03-", "bubble": "chapters/16", "reduce-scatter": "chapters/11", "offloading": "chapters/22",
    "gradient compression": "chapters/28", "device mesh": "chapters/23", "3D parallelism": "chapters/24", "ring all-reduce": "chapters/12",
    "Llama 3": "chapters/34", "DeepSeek-V3": "chapters/35", "Mixtral": "chapters/36-", "activation memory": "chapters/19",
    "data loading": "chapters/03a", "rematerialization": "chapters/21", "loss scaling": "chapters/30", "FLOPs per token": "chapters/01",
    "profiler": "chapters/32", "reinforcement learning": "chapters/36a", "all reduce": "chapters/11", "glossary": "appendices/glossary",
}
