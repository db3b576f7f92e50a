"""Sizes of ESP-NN's scratch: ours against the library's own functions, on random shapes.

    python benchmarks/esp_nn_sizes.py PATH_TO_ESP_NN [--release 1.2.3] [--shapes 100000]
                                      [--record FILE]

PATH_TO_ESP_NN is a checkout of espressif/esp-nn, or the component as the registry delivers it. The
size functions of the S3, the P4 and generic C are plain C; they are cut out of its files into a
temporary folder, compiled there by the host's compiler (CC, or cc), and called. Nothing of them is
kept. It ends with 1 if a size differs, and names the first shapes that do. `--record` appends what
the library answered for some shapes to a table (tests/data/esp_nn_scratch.csv).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tflm_planner.ops.window import low_paddings
from tflm_planner.tflm.kernels.libraries.esp_nn.releases import RELEASES, Release, spell
from tflm_planner.tflm.kernels.libraries.esp_nn.scratch import (
    ConvShape,
    p4_convolution,
    s3_convolution,
    s3_depthwise,
)

_PREFIX = """
#include <stdint.h>
#include <stddef.h>
#include "esp_nn_defs.h"
#ifndef max
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif
"""
_CALLED = """
int call_{kind}(const int *s) {{
    data_dims_t in = {{.width = s[1], .height = s[0], .channels = s[10], .extra = 1}};
    data_dims_t out = {{.width = s[3], .height = s[2], .channels = s[11], .extra = 1}};
    data_dims_t filter = {{.width = s[5], .height = s[4], .channels = s[10], .extra = 0}};
    {params} params = {{.stride = {{s[7], s[6]}}, .padding = {{s[9], s[8]}}}};
    {multiplier}
    return esp_nn_get_{function}(&in, &filter, &out, &params);
}}
"""
_FUNCTIONS: dict[str, tuple[str, Callable[[ConvShape, Release], int]]] = {
    "conv_scratch_size_esp32s3": ("convolution", s3_convolution),
    "depthwise_conv_scratch_size_esp32s3": ("depthwise", s3_depthwise),
    "conv_scratch_size_esp32p4": ("convolution", p4_convolution),
    "depthwise_conv_scratch_size_esp32p4": ("depthwise", lambda g, release: 0),
    "conv_scratch_size_opt": ("convolution", lambda g, release: 0),
    "depthwise_conv_scratch_size_opt": ("depthwise", lambda g, release: 0),
}
"""By the end of its name: which operator it sizes, and our own. A release may lack one."""
_RECORDED = 200
"""Shapes a function."""
_KERNELS = ((1, 1), (3, 3), (5, 5), (1, 3), (3, 1), (5, 1), (10, 4), (2, 2), (7, 7))
_CHANNELS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 256)


def main() -> int:
    """Compare, and say what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--release", default="")
    parser.add_argument("--shapes", type=int, default=100_000)
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    release = _release(arguments.release or _version_in(arguments.folder))
    with tempfile.TemporaryDirectory() as temporary:
        functions = _compiled(arguments.folder, Path(temporary))
        if arguments.record:
            _record(arguments.record, functions, release)
        wrong = [_compare(name, f, release, arguments.shapes) for name, f in functions.items()]
    return 1 if any(wrong) else 0


def _compare(name: str, function: Callable[..., int], release: Release, shapes: int) -> int:
    """How many sizes differ; the first three are printed."""
    kind, ours = _FUNCTIONS[name]
    wrong = 0
    for g in _geometries(random.Random(name), kind, shapes):
        theirs = _asked(function, g)
        if theirs != ours(g, release):
            wrong += 1
            if wrong <= 3:
                print(f"  {g}: {theirs:,} bytes, here {ours(g, release):,}")
    print(f"{spell(release)}  {name:40}{shapes:>9,} shapes  {wrong:,} differ")
    return wrong


def _asked(function: Callable[..., int], g: ConvShape) -> int:
    numbers = _numbers(g)
    return function((ctypes.c_int * len(numbers))(*numbers))


def _numbers(g: ConvShape) -> tuple[int, ...]:
    return (*g.image, *g.output, *g.kernel, *g.stride, *g.pad, g.depth, g.channels, g.multiplier)


def _record(path: Path, functions: dict[str, Callable[..., int]], release: Release) -> None:
    """A row for each of some shapes: release, function, shape, and the library's answer."""
    with path.open("a", encoding="utf-8", newline="\n") as table:
        for name, function in functions.items():
            kind, ours = _FUNCTIONS[name]
            if ours not in (s3_convolution, s3_depthwise, p4_convolution):
                continue
            for g in _geometries(random.Random(f"record {name}"), kind, _RECORDED):
                row = spell(release), name, *_numbers(g), _asked(function, g)
                table.write(",".join(map(str, row)) + "\n")


def _geometries(draw: random.Random, kind: str, count: int) -> Iterator[ConvShape]:
    """Shapes as TFLite models have them: a result that fits its image, and padding of SAME, of
    VALID, or with dilation, which Prepare counts in the padding alone."""
    while count:
        kernel = draw.choice(_KERNELS)
        image = draw.choice((1, 2, 7, 8, 13, 24, 49, 96, 224)), draw.randint(1, 97)
        if draw.random() < 0.05:
            image = image[0], draw.choice((224, 800))
        side = draw.choice((1, 1, 2, 3))
        stride = (side, side) if draw.random() < 0.8 else (1, 2)
        dilation = draw.choice(((1, 1),) * 4 + ((2, 2),))
        valid = draw.random() < 0.5
        wide = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
        output = [-(-(i - k + 1 if valid else i) // s)
                  for i, k, s in zip(image, wide, stride, strict=True)]  # fmt: skip
        if min(output) < 1:
            continue
        depth = draw.choice(_CHANNELS)
        multiplier = draw.choice((1, 1, 1, 2, 3, 4, 8, 16)) if kind == "depthwise" else 1
        channels = depth * multiplier if kind == "depthwise" else draw.choice(_CHANNELS)
        pad = low_paddings(image, kernel, stride, dilation, valid)
        count -= 1
        yield ConvShape(image, (output[0], output[1]), kernel, stride, pad, depth, channels,
                       multiplier)  # fmt: skip


def _compiled(folder: Path, temporary: Path) -> dict[str, Callable[..., int]]:
    """The functions that the release has, compiled."""
    texts = [p.read_text("utf-8") for p in sorted((folder / "src" / "convolution").glob("*.c"))]
    limits = {m for text in texts for m in re.findall(r"^#define L1D_BUDGET .*$", text, re.M)}
    parts, found = [_PREFIX, *limits], list[str]()
    for name, (kind, _) in _FUNCTIONS.items():
        body = next((b for text in texts if (b := _cut(text, f"esp_nn_get_{name}"))), "")
        if not body:
            continue
        found.append(name)
        depthwise = kind == "depthwise"
        parts += [body, _CALLED.format(
            kind=name, function=name, params="dw_conv_params_t" if depthwise else "conv_params_t",
            multiplier="params.ch_mult = s[12];" if depthwise else "")]  # fmt: skip
    if not found:
        raise SystemExit(f"{folder} holds no size functions: is it a checkout of esp-nn?")
    source, library = temporary / "sizes.c", temporary / "sizes.so"
    source.write_text("\n".join(parts), "utf-8")
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-w"]
    subprocess.run([*command, f"-I{folder / 'include'}", "-o", library, source], check=True)
    loaded = ctypes.CDLL(str(library))
    return {name: getattr(loaded, f"call_{name}") for name in found}


def _cut(text: str, name: str) -> str:
    """A function out of a file; empty where it is not there."""
    head = re.search(rf"^int {name}\([^)]*\)\s*\{{", text, re.M)
    end = head and re.search(r"^\}", text[head.end() :], re.M)
    return text[head.start() : head.end() + end.end()] if head and end else ""


def _version_in(folder: Path) -> str:
    path = folder / "idf_component.yml"
    written = path.read_text("utf-8") if path.is_file() else ""
    found = re.search(r'^version: "?([\d.]+)', written, re.M)
    if found is None:
        raise SystemExit(f"{path} names no version: give --release")
    return found[1]


def _release(text: str) -> Release:
    for release in RELEASES:
        if spell(release) == text:
            return release
    known = ", ".join(map(spell, RELEASES))
    raise SystemExit(f"release {text} was not read; known are {known}")


if __name__ == "__main__":
    sys.exit(main())
