import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.models.build import Net
from tests.tflm.custom_models import MODELS
from tests.tflm.wheel import Wheel
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.kernels.operator_allocations import operator_allocations
from tflm_planner.tflm.kernels.prepare import PersistentAllocation
from tflm_planner.tflm.kernels.scratch import scratch_requests
from tflm_planner.tflm.targets import load_target

M4, WHEEL = load_target("cortex-m4/cmsis-nn"), load_target("x86-64/wheel")


def only(name: str) -> Op:
    (op,) = read_model(MODELS[name]()).ops()
    return op


@pytest.mark.parametrize(
    ("name", "init", "pieces", "scratch"),
    [
        # 3 pointers, length, direction, 64 factors, 256 twiddles, 384 temporary, 4 bytes each.
        ("rfft_int16_512", (32, 12 + 8 + 256 + 4 * (256 + 384)), [], [1024]),
        ("irfft_float32_30", (24, 8 + 12 + 8 + 256 + 8 * (15 + 22)), [], []),
        ("overlap_add_float32_2", (24,), [4 * 6, *6 * [40]], []),
        # The frame of 10 in steps of 4 takes 12 elements of int16, twice.
        ("framer_1", (28,), [12, 12, *3 * [24 + 48]], []),
        ("delay_0", (20,), [4, 4, 24 + 4 * 17], []),
        ("stacker", (36, 24 + 4 * 28), [], []),
        ("filter_bank", (36, 24), [], []),
        ("filter_bank_spectral_subtraction", (44, 36), [], []),
        ("decode_prune_channels", (), [4, 40, 5], []),
        ("decode_all", (), [16, 36, 40, 20, 28, 40], []),
        ("ethos_u", (12,), [], [8 * 3, 4 * 3]),
    ],
)
def test_on_a_cortex_m(name: str, init: tuple[int, ...], pieces: list[int], scratch: list[int]):
    op = only(name)
    found = operator_allocations(op, M4)
    assert found.known and found.init == init
    assert [s.size for s in found.prepare if isinstance(s, PersistentAllocation)] == pieces
    assert list(scratch_requests(op, M4)) == scratch


def model_with(code: str, options: bytes, constants: bool = False) -> bytes:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (3, 8), "int16")
    inputs = [x, graph.constant("more", np.zeros(20), "uint8")] if constants else [x]
    y = graph.tensor("y", (3, 8), "int16")
    graph.custom(code, inputs, [y], options)
    graph.outputs(y)
    return net.finish()


def pack(**options: float) -> bytes:
    return bytes(flexbuffers.Dumps(options))


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("SignalRfft", b""),
        ("SignalRfft", b"\x01\x02\x03"),
        ("SignalRfft", pack(T=7)),
        ("SignalRfft", pack(T=1234, fft_length=8)),
        ("SignalRfft", pack(T=7, fft_length=-8)),
        ("SignalIrfft", pack(T=7, fft_length=9)),
        ("SignalFramer", pack(frame_size=4, frame_step=0, prefill=0)),
        ("SignalFilterBank", pack(num_channels=1 << 40)),
        ("SignalStacker", pack(num_channels=3)),
        ("TFLite_Detection_PostProcess", pack(num_classes=3)),
        ("TFLM_DECODE", b""),
        ("NobodyKnows", b""),
    ],
)
def test_parameters_that_cannot_be_read_give_a_bound_and_a_warning(code: str, options: bytes):
    model = read_model(model_with(code, options))
    arena = arena_of(model, M4)
    assert any(code in warning and "assumed" in warning for warning in arena.warnings)
    assert [s.size for s in arena.scratch] == [4 * 48]


def test_decode_needs_its_tables() -> None:
    """DECODE of tensors that are not there, and by an unknown decoder."""
    for data in (model_with("TFLM_DECODE", b"", constants=True), model_with("TFLM_DECODE", b"")):
        assert arena_of(read_model(data), M4).warnings


def test_the_driver_of_ethos_u_is_said_to_be_apart() -> None:
    arena = arena_of(read_model(MODELS["ethos_u"]()), M4)
    assert any("driver" in warning for warning in arena.warnings)


def test_operators_newer_than_the_library_of_2023_are_said_to_fail() -> None:
    old = load_target("arduino-2023")
    for name in ("window", "decode_lut", "batch_matmul_int8_00"):
        model = read_model(MODELS[name]())
        (reason,) = arena_of(model, old).cannot_run
        assert "TFLM of 2023-02-27 has no" in reason and "--tflm" in reason
        assert arena_of(model, M4).warnings == arena_of(model, M4).cannot_run == ()
    for name in ("conv_int8_3x3_1", "circular_buffer"):
        assert arena_of(read_model(MODELS[name]()), old).warnings == ()


@pytest.mark.parametrize(("length", "factor"), [(32, None), (60, None), (28, 7), (2 * 11 * 7, 77)])
@pytest.mark.parametrize("kind", ["SignalRfft", "SignalIrfft"])
def test_transforms_that_crash_are_named(kind: str, length: int, factor: int | None) -> None:
    net = Net()
    graph = net.graph()
    shapes = (length, length + 2) if kind == "SignalRfft" else (length + 2, length)
    x, y = graph.input("x", (shapes[0],), "int16"), graph.tensor("y", (shapes[1],), "int16")
    graph.custom(kind, [x], [y], pack(T=7, fft_length=length))
    graph.outputs(y)
    said = [w for w in arena_of(read_model(net.finish()), M4).warnings if "crashes" in w]
    assert len(said) == (factor is not None)
    assert factor is None or said[0].endswith(f"this one has {factor}")


def random_stream(seed: int) -> bytes:
    """A chain of signal operators of random sizes, as a microphone's front end has."""
    rng = np.random.default_rng(seed)
    step, frames, outer = (int(rng.integers(1, high)) for high in (30, 5, 4))
    size = step + int(rng.integers(0, 40))
    # Other factors than 2, 3 and 5 need a buffer that TFLM's kissfft cannot allocate: it crashes.
    smooth = (4, 10, 12, 18, 20, 30, 32, 36, 40, 48, 60, 72, 90, 100, 120, 144)
    length = next(n for n in smooth[int(rng.integers(0, 12)) :] if n >= size)
    net = Net()
    graph = net.graph()
    x = graph.input("x", (outer, step * frames), "int16")
    late = graph.tensor("late", (outer, step * frames), "int16")
    framed = graph.tensor("framed", (outer, frames, size), "int16")
    valid = graph.tensor("valid", (), "bool")
    shaped = graph.tensor("shaped", (outer, frames, size), "int16")
    spectrum = graph.tensor("spectrum", (outer, frames, length + 2), "int16")
    back = graph.tensor("back", (outer, frames, length), "int16")
    added = graph.tensor("added", (outer, frames * step), "int16")
    weights = graph.constant("weights", rng.integers(0, 4096, size), "int16")
    graph.custom("SignalDelay", [x], [late], pack(delay_length=int(rng.integers(0, 50))))
    graph.custom(
        "SignalFramer", [late], [framed, valid], pack(frame_size=size, frame_step=step, prefill=1)
    )
    graph.custom("SignalWindow", [framed, weights], [shaped], pack(shift=12))
    graph.custom("SignalRfft", [shaped], [spectrum], pack(T=7, fft_length=length))
    graph.custom("SignalIrfft", [spectrum], [back], pack(T=7, fft_length=length))
    graph.custom("SignalOverlapAdd", [back], [added], pack(T=7, frame_step=step))
    graph.outputs(added, valid)
    return net.finish()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.mostly_slow(fast=2)
def test_random_front_ends_in_the_wheel(seed: int) -> None:
    pytest.importorskip("tflite_micro")
    data = random_stream(seed)
    arena = arena_of(read_model(data), WHEEL)
    host = Wheel(data)
    try:
        assert host.run((arena.arena + 65536) // 16 * 16) == (arena.head, arena.tail)
        assert host.run(arena.arena) is not None
        assert [host.run(arena.arena - less) for less in (1, 8, 16)] == [None] * 3
    finally:
        host.close()
