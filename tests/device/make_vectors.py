"""Writes schema/protocol_vectors.json: `python -m tests.device.make_vectors`.

Built here with a COBS and a CRC of their own, slow and obvious, so that the vectors check the
product's code rather than repeat it. The firmware's tests read the same file.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parents[2] / "schema" / "protocol_vectors.json"
MAGIC = 0x4D4C4654


def crc32(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def cobs(data: bytes) -> bytes:
    out, run = bytearray(), bytearray()
    for byte in data:
        if byte == 0:
            out += bytes((len(run) + 1,)) + run
            run.clear()
        else:
            run.append(byte)
            if len(run) == 254:
                out += b"\xff" + run
                run.clear()
    return bytes(out + bytes((len(run) + 1,)) + run)


def body(kind: int, status: int, sequence: int, payload: bytes, length: int | None = None) -> bytes:
    head = struct.pack("<BBHH", kind, status, sequence, len(payload) if length is None else length)
    return head + payload + struct.pack("<I", crc32(head + payload))


def wire(data: bytes) -> bytes:
    return b"\0" + cobs(data) + b"\0"


def good(
    name: str, kind: int, status: int, seq: int, payload: bytes, **means: Any
) -> dict[str, Any]:
    return {
        "name": name, "wire": wire(body(kind, status, seq, payload)).hex(), "type": kind,
        "status": status, "sequence": seq, "payload": payload.hex(), "means": means,
    }  # fmt: skip


def item(tag: int, value: bytes) -> bytes:
    return bytes((tag, len(value))) + value


def good_frames() -> list[dict[str, Any]]:
    p = struct.pack
    caps = item(1, b"nano33ble") + item(0x11, p("<I", 64_000_000)) + item(0x21, b"CONV_2D")
    return [
        good("hello", 0x01, 0, 7, p("<IBBHI", MAGIC, 1, 0, 4096, 0x12345678),
             magic=MAGIC, major=1, minor=0, max_payload=4096, nonce=0x12345678),
        good("hello reply", 0x81, 0, 7, p("<IBBHIB3x", MAGIC, 1, 0, 1024, 0x12345678, 2),
             magic=MAGIC, major=1, minor=0, max_payload=1024, nonce=0x12345678, reset=2),
        good("hello reply of a later minor version, with more behind", 0x81, 0, 7,
             p("<IBBHIB3xI", MAGIC, 1, 9, 512, 1, 0, 99),
             magic=MAGIC, major=1, minor=9, max_payload=512, nonce=1, reset=0),
        good("capabilities", 0x02, 0, 8, p("<H", 0), first=0),
        good("capabilities reply", 0x82, 0, 8, p("<HH", 20, 0) + caps, total=20, first=0,
             items=[[1, b"nano33ble".hex()], [0x11, p("<I", 64_000_000).hex()],
                    [0x21, b"CONV_2D".hex()]]),
        good("model begin", 0x10, 0, 9, p("<II", 333_288, 0xDEADBEEF), size=333_288,
             crc=0xDEADBEEF),
        good("model begin reply", 0x90, 0, 9, p("<HH", 1000, 0), chunk=1000),
        good("model begin refused: too big", 0x90, 0x20, 9, p("<I", 65536) + b"RAM", detail=65536,
             text="RAM"),
        good("model chunk", 0x11, 0, 10, p("<I", 1000) + bytes(range(64)), offset=1000,
             bytes=bytes(range(64)).hex()),
        good("model chunk reply", 0x91, 0, 10, p("<I", 1064), received=1064),
        good("model end", 0x12, 0, 11, b""),
        good("model end reply", 0x92, 0, 11, p("<II", 1064, 0xCAFEF00D), size=1064, crc=0xCAFEF00D),
        good("model select", 0x13, 0, 12, p("<HH", 1, 0), index=1),
        good("arena", 0x20, 0, 13, p("<I", 0), size=0),
        good("arena reply", 0xA0, 0, 13, p("<I", 131_072), size=131_072),
        good("allocate, smallest", 0x21, 0, 14, p("<HHI", 1, 16, 4096), flags=1, step=16,
             lowest=4096),
        good("allocate is working", 0xA1, 1, 14, p("<II", 3, 0xFFFFFFFF), done=3, total=0xFFFFFFFF),
        good("allocate reply", 0xA1, 0, 14,
             p("<IIIIIIIHHHH", 131_072, 100_000, 73_728, 26_272, 100_712, 640_000, 0xFFFFFFFF, 1, 1,
               0, 14),
             arena=131_072, used=100_000, head=73_728, tail=26_272, smallest=100_712, ticks=640_000,
             stack=0xFFFFFFFF, inputs=1, outputs=1, flags=0, trials=14),
        good("allocate refused: operator missing", 0xA1, 0x23, 14, p("<I", 0) + b"CONV_2D",
             detail=0, text="CONV_2D"),
        good("tensor", 0x22, 0, 15, p("<BBH", 0, 0, 0), which=0, index=0),
        good("tensor reply", 0xA2, 0, 15, p("<BBHI4i", 9, 4, 0, 27_648, 1, 96, 96, 3), type=9,
             rank=4, size=27_648, dims=[1, 96, 96, 3]),
        good("input", 0x23, 0, 16, p("<HHI", 0, 0, 0) + b"\x80\x00\x7f\xff", index=0, offset=0,
             bytes="80007fff"),
        good("input reply", 0xA3, 0, 16, p("<I", 4), size=4),
        good("invoke, filled, with log of operators", 0x24, 0, 17, p("<HHI", 7, 10, 42), flags=7,
             count=10, seed=42),
        good("invoke reply", 0xA4, 0, 17, p("<HHIIIII", 10, 2, 3, 40, 1234, 0x11111111, 0x22222222),
             runs=10, outputs=2, events=3, entries=40, stack=1234, crc=[0x11111111, 0x22222222]),
        good("log", 0x25, 0, 18, p("<I", 4), first=4),
        good("log reply", 0xA5, 0, 18, p("<IIIII", 40, 4, 100, 60, 0xFFFFFFFF), entries=40, first=4,
             ticks=[100, 60, 0xFFFFFFFF]),
        good("output", 0x26, 0, 19, p("<HHI", 1, 0, 0), index=1, offset=0),
        good("output reply", 0xA6, 0, 19, p("<III", 2, crc32(b"\x00\x80"), 0) + b"\x00\x80", size=2,
             crc=crc32(b"\x00\x80"), offset=0, bytes="0080"),
        good("memory", 0x27, 0, 20, b""),
        good("memory reply", 0xA7, 0, 20, p("<8I", 1, 2, 3, 4, 5, 6, 7, 8), static=1, heap_used=2,
             heap_peak=3, heap_free=4, stack_size=5, stack_allocate=6, stack_invoke=7,
             bad_frames=8),
        good("reset: no session", 0xA4, 0x13, 21, p("<I", 0), detail=0, text=""),
        good("unknown command", 0xFF, 0x10, 65535, p("<I", 0), detail=0, text=""),
        good("a run of 254 bytes that are not zero", 0x11, 0, 0x0101,
             p("<I", 0x01010101) + b"\x55" * 400, offset=0x01010101, bytes=(b"\x55" * 400).hex()),
        good("zeros only", 0x11, 0, 0, bytes(128), offset=0, bytes=bytes(124).hex()),
    ]  # fmt: skip


def bad_frames() -> list[dict[str, Any]]:
    def bad(name: str, data: bytes) -> dict[str, Any]:
        return {"name": name, "wire": data.hex()}

    fine = body(0x01, 0, 7, struct.pack("<IBBHI", MAGIC, 1, 0, 4096, 1))
    flipped = bytearray(fine)
    flipped[8] ^= 0x10
    return [
        bad("one bit of the payload is wrong", wire(bytes(flipped))),
        bad("the crc is wrong", wire(fine[:-1] + bytes((fine[-1] ^ 1,)))),
        bad("the length says one byte more", wire(body(0x12, 0, 1, b"ab", 3))),
        bad("the length says one byte less", wire(body(0x12, 0, 1, b"ab", 1))),
        bad("the length says 65535", wire(body(0x12, 0, 1, b"", 65535))),
        bad("nine bytes", wire(fine[:9])),
        bad("one byte", b"\0\x02\x01\0"),
        bad("the last byte is missing", wire(fine)[:-2] + b"\0"),
        bad("a COBS code points beyond the end", b"\0\x05\x01\x02\0"),
        bad("a code of 255 and less behind it", b"\0\xff" + b"\x11" * 100 + b"\0"),
        bad("garbage", b"\0" + bytes(range(1, 200)) + b"\0"),
    ]


def streams() -> list[dict[str, Any]]:
    """Bytes as they come, and the names of the good frames that a receiver must find in them."""
    named = {f["name"]: bytes.fromhex(f["wire"]) for f in good_frames()}
    hello, end, begin = named["hello"], named["model end"], named["model begin"]
    return [
        {"name": "garbage before a frame", "wire": (b"\xff\x13AT+OK\r\n" + hello).hex(),
         "frames": ["hello"]},
        {"name": "garbage between frames", "wire": (hello + b"\x01\x02\x03" + end).hex(),
         "frames": ["hello", "model end"]},
        {"name": "garbage inside a frame; the next is found",
         "wire": (hello[:5] + b"\x99\x98" + hello[5:] + end).hex(), "frames": ["model end"]},
        {"name": "a frame cut off by another",
         "wire": (begin[:9] + hello).hex(), "frames": ["hello"]},
        {"name": "one zero between two frames", "wire": (hello + end[1:]).hex(),
         "frames": ["hello", "model end"]},
        {"name": "many zeros", "wire": (b"\0" * 9 + hello + b"\0" * 9 + end + b"\0").hex(),
         "frames": ["hello", "model end"]},
        {"name": "the same frame twice", "wire": (end + end).hex(),
         "frames": ["model end", "model end"]},
        {"name": "longer than any frame, then a frame",
         "wire": (b"\0" + b"\x7e" * 5000 + b"\0" + hello).hex(), "frames": ["hello"]},
        {"name": "no end yet", "wire": hello[:-1].hex(), "frames": []},
    ]  # fmt: skip


def cobs_pairs() -> list[dict[str, str]]:
    """From the paper and its common tables; `also`: another form that decodes to the same."""
    run = bytes(range(1, 255))
    pairs = [
        (b"", b"\x01"),
        (b"\0", b"\x01\x01"),
        (b"\0\0", b"\x01\x01\x01"),
        (b"\x11\x22\0\x33", b"\x03\x11\x22\x02\x33"),
        (b"\x11\0\0\0", b"\x02\x11\x01\x01\x01"),
        (run, b"\xff" + run + b"\x01"),
        (b"\0" + run, b"\x01\xff" + run + b"\x01"),
        (run + b"\xff", b"\xff" + run + b"\x02\xff"),
        (run + b"\0", b"\xff" + run + b"\x01\x01"),
    ]
    rows = [{"data": data.hex(), "encoded": encoded.hex()} for data, encoded in pairs]
    rows[5]["also"] = (b"\xff" + run).hex()
    rows[6]["also"] = (b"\x01\xff" + run).hex()
    return rows  # fmt: skip


def fills() -> list[dict[str, Any]]:
    """Generated inputs: the bytes of the first elements of an input."""
    formats = {"int8": "B", "uint8": "B", "int16": "H", "uint16": "H", "int32": "I", "uint32": "I",
               "int64": "Q", "uint64": "Q", "bool": "B", "float32": "f"}  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name, form in formats.items():
        for seed, index in ((0, 0), (42, 0), (42, 1), (0x9E3779B9, 0)):
            x, data = (seed ^ (0x9E3779B9 * (index + 1))) & 0xFFFFFFFF or 1, b""
            for _ in range(12):
                x ^= x << 13 & 0xFFFFFFFF
                x ^= x >> 17
                x ^= x << 5 & 0xFFFFFFFF
                narrow = {"B": x >> 24, "H": x >> 16}
                value = ((x >> 24) - 128) / 32 if form == "f" else narrow.get(form, x >> 31)
                data += struct.pack("<" + form, x >> 31 if name == "bool" else value)
            rows.append({"type": name, "seed": seed, "input": index, "bytes": data.hex()})
    return rows


def document() -> dict[str, Any]:
    return {
        "title": "Vectors of schema/protocol.md; written by tests/device/make_vectors.py",
        "protocol": [1, 0],
        "crc": [{"data": d.hex(), "crc": crc32(d)} for d in (b"", b"123456789", bytes(32))],
        "cobs": cobs_pairs(), "frames": good_frames(), "bad": bad_frames(), "streams": streams(),
        "fill": fills(),
    }  # fmt: skip


if __name__ == "__main__":
    PLACE.write_text(json.dumps(document(), indent=1) + "\n")
