"""assets/braid: the first picture of the course, still and as a loop. The rope never gets thicker."""

import re

from mhsa.draw.flow import WIDTH, draw_flow
from mhsa.draw.svg import standalone
from mhsa.follow import follow
from mhsa.toys import SENTENCE
from mhsa.train.example import load_examples

D_MODEL, WORD = 12, SENTENCE.index("lost")
LOOP = (1, 2, 3, 4)  # heads
SECONDS = 2  # a number of heads
LINE = "One rope, {} strand{}: with d_k = d_model / h it is as thick for any number of heads."


def draw_braid(num_heads: int = 3) -> str:
    """*lost* and its heads, in a layer trained to tell who and what."""
    example = load_examples()[D_MODEL, num_heads]
    flow = follow(example.layer, example.x, SENTENCE, WORD)
    return standalone(draw_flow(flow, head=-1, lines=[LINE.format(num_heads, "s" * (num_heads > 1))]))


def draw_braid_loop() -> str:
    """The same with 1, 2, 3, 4 heads, again and again. Whoever wants less motion sees three, at rest."""
    pictures = [draw_braid(h) for h in LOOP]
    height = max(float(re.findall(r'height="([\d.]+)"', svg)[0]) for svg in pictures)
    share = 100 / len(LOOP)
    delays = " ".join(f".frame:nth-of-type({i + 1}) {{ animation-delay: {SECONDS * i}s; }}" for i in range(len(LOOP)))
    style = f"""<style>
.frame {{ opacity: 0; animation: show {SECONDS * len(LOOP)}s infinite; }}
@keyframes show {{ 0%, {share - 4:g}% {{ opacity: 1; }} {share:g}%, 96% {{ opacity: 0; }} 100% {{ opacity: 1; }} }}
{delays}
@media (prefers-reduced-motion: reduce) {{ .frame {{ animation: none; }} .frame:nth-of-type(3) {{ opacity: 1; }} }}
</style>"""
    opening = pictures[2].partition(">")[0]
    for attribute, size in (("viewBox", f"0 0 {WIDTH} {height:g}"), ("height", f"{height:g}")):
        opening = re.sub(f' {attribute}="[^"]*"', f' {attribute}="{size}"', opening)
    words, *frames = [re.split(r"(?<=</desc>)|</svg>$", svg.partition(">")[2])[:2] for svg in [pictures[2], *pictures]]
    shown = "".join(f'<g class="frame">{frame}</g>' for _, frame in frames)
    return f"{opening}>{words[0]}{style}{shown}</svg>"
