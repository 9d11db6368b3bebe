"""Speed and memory of the layer, ours against torch's and the floor: what lessons 9 and 10 measure with.

`python -m mhsa.bench` compares whole grids of shapes.
"""

from mhsa.bench import fast_attention
from mhsa.bench.baselines import Shape, contestants
from mhsa.bench.decoding import decode
from mhsa.bench.measure import chosen_kernel, measure_memory, page_faults, peak_extra_bytes, time_interleaved

__all__ = [
    "Shape",
    "chosen_kernel",
    "contestants",
    "decode",
    "fast_attention",
    "measure_memory",
    "page_faults",
    "peak_extra_bytes",
    "time_interleaved",
]
