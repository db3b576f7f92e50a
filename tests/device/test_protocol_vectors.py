"""The host's framing and messages against the vectors that the firmware passes too."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any

import numpy as np
import pytest
from cobs import cobs

from tests.device.make_vectors import PLACE, document
from tests.device.make_vectors import cobs as by_the_paper
from tflm_planner.device.protocol import fill, framing, messages

VECTORS: dict[str, Any] = json.loads(PLACE.read_text())


def named(key: str) -> Any:
    rows = VECTORS[key]
    return pytest.mark.parametrize("row", rows, ids=[r.get("name", i) for i, r in enumerate(rows)])


def test_the_file_is_what_its_script_writes() -> None:
    assert json.loads(json.dumps(document())) == VECTORS


def received(receiver: framing.Receiver, data: bytes) -> list[framing.Frame]:
    """The frames that are complete once `data` has come."""
    receiver.push(data)
    return list(iter(receiver.take, None))


@named("frames")
def test_frames_are_encoded_and_found(row: dict[str, Any]) -> None:
    frame = framing.Frame(
        row["type"], row["status"], row["sequence"], bytes.fromhex(row["payload"])
    )
    wire = bytes.fromhex(row["wire"])
    assert framing.encode(frame) == wire
    assert received(framing.Receiver(), wire) == [frame]


@named("bad")
def test_bad_frames_are_dropped_and_counted(row: dict[str, Any]) -> None:
    receiver = framing.Receiver()
    assert received(receiver, bytes.fromhex(row["wire"])) == []
    assert receiver.bad == 1
    assert receiver.last


@named("streams")
@pytest.mark.parametrize("piece", [1, 3, 64, 10_000])
def test_streams_in_pieces(row: dict[str, Any], piece: int) -> None:
    data = bytes.fromhex(row["wire"])
    receiver = framing.Receiver()
    found = [f for i in range(0, len(data), piece) for f in received(receiver, data[i : i + piece])]
    wires = {r["name"]: bytes.fromhex(r["wire"]) for r in VECTORS["frames"]}
    assert [framing.encode(f) for f in found] == [wires[name] for name in row["frames"]]


@named("cobs")
def test_cobs(row: dict[str, str]) -> None:
    data, encoded = bytes.fromhex(row["data"]), bytes.fromhex(row["encoded"])
    also = bytes.fromhex(row.get("also", row["encoded"]))
    assert cobs.encode(data) in (encoded, also)
    assert cobs.decode(encoded) == cobs.decode(also) == data


def test_cobs_of_random_bytes() -> None:
    rng = random.Random(0)
    for size in [*range(600), 4000]:
        data = bytes(rng.choice((0, 1, 255)) if rng.random() < 0.02 else 7 for _ in range(size))
        ours = by_the_paper(data)
        ends = (ours, ours.removesuffix(b"\1"))  # an encoder may leave a last 01 out
        assert cobs.encode(data) in ends
        assert cobs.decode(ours) == cobs.decode(cobs.encode(data)) == data


@named("crc")
def test_crc(row: dict[str, Any]) -> None:
    assert zlib.crc32(bytes.fromhex(row["data"])) == row["crc"]


@named("fill")
def test_filled_inputs(row: dict[str, Any]) -> None:
    dtype = np.dtype(row["type"])
    drawn = np.array(fill.draw(12, row["input"], row["seed"]), np.uint32)
    assert (
        fill.elements(drawn, dtype).astype(dtype.newbyteorder("<")).tobytes().hex() == row["bytes"]
    )


def row_of(name: str) -> tuple[bytes, dict[str, Any]]:
    row = next(r for r in VECTORS["frames"] if r["name"] == name)
    return bytes.fromhex(row["payload"]), row["means"]


LAYOUTS = {
    "hello": (messages.HELLO, "magic major minor max_payload nonce"),
    "hello reply": (messages.HELLO_REPLY, "magic major minor max_payload nonce reset"),
    "hello reply of a later minor version, with more behind": (
        messages.HELLO_REPLY, "magic major minor max_payload nonce reset"),
    "model begin": (messages.SIZE_CRC, "size crc"),
    "model begin reply": (messages.CHUNK_SIZE, "chunk"),
    "allocate, smallest": (messages.ALLOCATE, "flags step lowest"),
    "allocate reply": (
        messages.ALLOCATE_REPLY,
        "arena used head tail smallest ticks stack inputs outputs flags trials"),
    "allocate is working": (messages.PROGRESS, "done total"),
    "invoke, filled, with log of operators": (messages.INVOKE, "flags count seed"),
    "invoke reply": (messages.INVOKE_REPLY, "runs outputs events entries stack"),
    "log reply": (messages.LOG_REPLY, "entries first"),
    "output reply": (messages.OUTPUT_REPLY, "size crc offset"),
    "memory reply": (
        messages.MEMORY_REPLY,
        "static heap_used heap_peak heap_free stack_size stack_allocate stack_invoke bad_frames"),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    payload, means = row_of(name)
    layout, fields = LAYOUTS[name]
    assert dict(zip(fields.split(), messages.unpack(layout, payload), strict=False)) == {
        key: means[key] for key in fields.split()
    }


def test_lists_behind_layouts() -> None:
    payload, means = row_of("invoke reply")
    assert list(messages.words(payload[messages.INVOKE_REPLY.size :], 2)) == means["crc"]
    payload, means = row_of("log reply")
    assert list(messages.words(payload[messages.LOG_REPLY.size :])) == means["ticks"]
    payload, means = row_of("capabilities reply")
    total, first, items = messages.unpack_items(payload)
    assert (total, first) == (means["total"], means["first"])
    assert [[t, v.hex()] for t, v in items] == means["items"]
    payload, means = row_of("model begin refused: too big")
    assert messages.read_error(payload) == (means["detail"], means["text"])
