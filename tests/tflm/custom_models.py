"""One small model for every custom operator that TFLM registers: sizes, not values."""

from collections.abc import Callable

import numpy as np
from flatbuffers import flexbuffers

from tests.models.build import Graph
from tests.tflm.operator_models import FLOAT, INT8, INT16, INT32, Build, register, value
from tests.tflm.operator_models import MODELS as BUILTIN
from tflm_planner.tflm.kernels.custom_ops import DECODE

UINT32, UINT64, BOOL = "uint32", "uint64", "bool"
TENSOR_TYPES = {FLOAT: 0, INT32: 2, INT16: 7}
CUSTOM: dict[str, Callable[[], bytes]] = {}
Given = tuple[str, tuple[int, ...]]
"""Element type and shape."""


def _register(name: str, build: Build) -> None:
    register(name, build, CUSTOM)


def custom(
    name: str, code: str, inputs: list[Given], outputs: list[Given], **options: float
) -> None:
    """Register a model of one custom operator whose inputs are the model's."""

    def whole(graph: Graph) -> list[int]:
        given = [value(graph, kind, shape, given=True) for kind, shape in inputs]
        made = [value(graph, kind, shape) for kind, shape in outputs]
        graph.custom(code, given, made, bytes(flexbuffers.Dumps(options)))
        return made

    _register(name, whole)


def _transforms() -> None:
    for kind, code in TENSOR_TYPES.items():
        for length in (4, 16, 30, 512):
            options = {"T": code, "fft_length": length}
            frame, spectrum = (kind, (length,)), (kind, (length + 2,))
            custom(f"rfft_{kind}_{length}", "SignalRfft", [frame], [spectrum], **options)
            custom(f"irfft_{kind}_{length}", "SignalIrfft", [spectrum], [frame], **options)
    custom(
        "rfft_batch", "SignalRfft", [(INT16, (3, 20))], [(INT16, (3, 34))], T=7, fft_length=32
    )  # fmt: skip
    for kind in (INT16, FLOAT):
        for outer in ((), (3,), (2, 3)):
            overlapped = [(kind, (*outer, 5, 10))]
            custom(
                f"overlap_add_{kind}_{len(outer)}", "SignalOverlapAdd", overlapped,
                [(kind, (*outer, 20))], T=TENSOR_TYPES[kind], frame_step=4,
            )  # fmt: skip
    custom("fft_auto_scale", "SignalFftAutoScale", [(INT16, (16,))], [(INT16, (16,)), (INT32, ())])


def _streams() -> None:
    for outer in ((), (3,), (2, 3)):
        rank = len(outer)
        stream = [(INT16, (*outer, 12))]
        framed = [(INT16, (*outer, 3, 10)), (BOOL, ())]
        custom(
            f"framer_{rank}", "SignalFramer", stream, framed,
            frame_size=10, frame_step=4, prefill=1,
        )  # fmt: skip
        custom(f"delay_{rank}", "SignalDelay", stream, stream, delay_length=5)
    custom(
        "stacker", "SignalStacker", [(INT16, (7,))], [(INT16, (28,)), (BOOL, ())],
        num_channels=7, stacker_left_context=3, stacker_right_context=0, stacker_step=2,
    )  # fmt: skip


def _filter_banks() -> None:
    banks = [(UINT32, (9,))]
    custom(
        "window", "SignalWindow", [(INT16, (3, 16)), (INT16, (16,))], [(INT16, (3, 16))], shift=12
    )
    custom(
        "energy", "SignalEnergy", [(INT16, (34,))], [(UINT32, (17,))], end_index=17, start_index=0
    )
    custom(
        "filter_bank_log", "SignalFilterBankLog", banks, [(INT16, (9,))],
        input_correction_bits=3, output_scale=1600,
    )  # fmt: skip
    custom(
        "filter_bank_square_root", "SignalFilterBankSquareRoot",
        [(UINT64, (9,)), (INT32, ())], banks,
    )  # fmt: skip
    custom(
        "filter_bank_spectral_subtraction", "SignalFilterBankSpectralSubtraction", banks,
        [*banks, *banks], alternate_one_minus_smoothing=0, alternate_smoothing=0, clamping=0,
        min_signal_remaining=819, num_channels=9, one_minus_smoothing=15974, smoothing=410,
        smoothing_bits=10, spectral_subtraction_bits=14,
    )  # fmt: skip
    custom("pcan", "SignalPCAN", [*banks, *banks, (INT16, (125,))], banks, snr_shift=6)
    _register("filter_bank", _filter_bank)


def _filter_bank(graph: Graph) -> list[int]:
    """Two channels over a spectrum of sixteen bins."""
    spectrum = graph.input("spectrum", (16,), UINT32)
    tables = ([100] * 24, [50] * 24, [0, 4, 8], [0, 4, 8], [4, 4, 4])
    given = [graph.constant(f"table{i}", table, INT16) for i, table in enumerate(tables)]
    output = graph.tensor("channels", (2,), UINT64)
    options = bytes(flexbuffers.Dumps({"num_channels": 2}))
    graph.custom("SignalFilterBank", [spectrum, *given], [output], options)
    return [output]


# --- DECODE ---------------------------------------------------------------------------------

LUT, HUFFMAN, PRUNE = range(3)


def _ancillary(kind: int, parameters: list[int], table: list[int]) -> np.ndarray:
    """Decode common metadata (16 bytes), and the table."""
    common = [kind, 1, 0, 0, 1, *parameters]
    return np.array([*common, *[0] * (16 - len(common)), *table], np.uint8)


def _decode(triples: list[tuple[int, int, int]]) -> Callable[[Graph], list[int]]:
    """Triples of decoder, channels and step of zero points, each decoded to channels x 8."""

    def build(graph: Graph) -> list[int]:
        inputs: list[int] = []
        outputs: list[int] = []
        for i, (kind, channels, zero) in enumerate(triples):
            parameters = {LUT: [4, 16], HUFFMAN: [0], PRUNE: []}[kind]
            data = _ancillary(kind, parameters, [0x80, 0x80] * 64 * channels)
            inputs.append(graph.constant(f"encoded{i}", np.zeros(64 * channels), "uint8"))
            inputs.append(graph.constant(f"ancillary{i}", data, "uint8"))
            scale = np.full(channels, 0.1)
            outputs.append(graph.tensor(f"y{i}", (channels, 8), INT8, scale=scale))
            zeros = zero * np.arange(1, channels + 1)
            graph.table.tensors[-1].quantization.zeroPoint = zeros
        graph.custom(DECODE, inputs, outputs, b"")
        return outputs

    return build


def _decoders() -> None:
    _register("decode_lut", _decode([(LUT, 1, 0)]))
    _register("decode_lut_channels", _decode([(LUT, 5, 0)]))
    _register("decode_huffman", _decode([(HUFFMAN, 1, 0)]))
    _register("decode_prune", _decode([(PRUNE, 1, 3)]))
    _register("decode_prune_channels", _decode([(PRUNE, 5, 3)]))
    _register("decode_prune_symmetric", _decode([(PRUNE, 5, 0)]))
    _register("decode_all", _decode([(LUT, 1, 0), (PRUNE, 20, 1), (HUFFMAN, 1, 0), (PRUNE, 3, 0)]))


# --- others ---------------------------------------------------------------------------------


def _detection(graph: Graph) -> list[int]:
    boxes = graph.input("boxes", (1, 6, 4), FLOAT)
    scores = graph.input("scores", (1, 6, 3), FLOAT)
    anchors = graph.constant("anchors", np.ones((6, 4)), FLOAT)
    outputs = [value(graph, FLOAT, shape) for shape in ((1, 3, 4), (1, 3), (1, 3), (1,))]
    options = {
        "max_detections": 3, "max_classes_per_detection": 1, "detections_per_class": 1,
        "use_regular_nms": False, "nms_score_threshold": 0.0, "nms_iou_threshold": 1.0,
        "num_classes": 2, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
    }  # fmt: skip
    inputs, given = [boxes, scores, anchors], bytes(flexbuffers.Dumps(options))
    graph.custom("TFLite_Detection_PostProcess", inputs, outputs, given)
    return outputs


def _circular_buffer(graph: Graph) -> list[int]:
    x = value(graph, INT8, (1, 1, 1, 12), given=True)
    output = graph.tensor("y", (1, 3, 1, 12), INT8, scale=0.0625, isVariable=True)
    options = bytes(flexbuffers.Dumps({"cycles_max": 1}))
    graph.custom("CIRCULAR_BUFFER", [x], [output], options)
    return [output]


_transforms()
_streams()
_filter_banks()
_decoders()
_register("detection_postprocess", _detection)
_register("circular_buffer", _circular_buffer)
custom("ethos_u", "ethos-u", [("uint8", (64,)), (INT8, (4, 4))], [(INT8, (4, 4))])

MODELS = {**BUILTIN, **CUSTOM}
"""Builtin and custom operators, by name."""

__all__ = ["MODELS"]
