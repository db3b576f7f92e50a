"""The host's view of a board: commands are methods, and every answer is checked.

    connect -> BoardClient -- upload, arena, allocate, invoke, log, outputs, memory

Answers of a board must agree with each other: lists that do not end, sizes that change and data
beyond the end are DeviceErrors. It must not know TFLite.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.line import Line
from tflm_planner.device.protocol.link import Greeting, Link, Timing
from tflm_planner.support.errors import DeviceError

P = TypeVar("P")
R = TypeVar("R")
MOST_INPUT = 1 << 28
"""Bytes of a tensor, and entries of a log, above which an answer is taken for damage."""


def if_known(value: int) -> int | None:
    """A number of the board, or None if the board reports it as unknown."""
    return None if value == m.UNKNOWN else value


@dataclass(frozen=True, slots=True)
class BoardAllocation:
    """The result of AllocateTensors. Sizes are bytes; None if unknown. ticks: ticks of the board's
    clock. stack: high-water mark. trials: how many arenas were tried to find the smallest."""

    arena: int
    used: int
    head: int | None
    tail: int | None
    smallest: int | None
    ticks: int
    stack: int | None
    inputs: int
    outputs: int
    lean: bool
    trials: int


@dataclass(frozen=True, slots=True)
class BoardTensor:
    """An input or output. type: number of its TfLiteType. size: bytes."""

    type: int
    size: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Invocation:
    """The result of an INVOKE command. runs: number of runs done. events: operators that began in a
    run; 0 if not counted. entries: number of entries in the log. stack: high-water mark in bytes.
    crcs: CRC-32 of every output after the first run."""

    runs: int
    events: int
    entries: int
    stack: int | None
    crcs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoardMemory:
    """Memory of the board in bytes; None if the board does not know. bad_frames: how many damaged
    frames it received."""

    static: int | None
    heap_used: int | None
    heap_peak: int | None
    heap_free: int | None
    stack_size: int | None
    stack_allocate: int | None
    stack_invoke: int | None
    bad_frames: int | None


class BoardClient:
    """A session with a board; `connect` begins one."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.greeting: Greeting = link.greet()
        self.says = self._capabilities()

    def close(self) -> None:
        """Close the line."""
        self.link.line.close()

    def on_work(self, listener: Callable[[int, int], None] | None) -> None:
        """Set the function that is called with the progress (done, total) of long commands, or
        None."""
        self.link.on_work = listener

    def _capabilities(self) -> m.Capabilities:
        items: list[tuple[int, bytes]] = []
        while True:
            payload = self.link.ask(m.Command.CAPABILITIES, m.U16.pack(len(items)))
            total, first, page = self._read(m.unpack_items, payload)
            if first != len(items) or (not page and total > len(items)):
                raise self._contradiction(
                    f"item {len(items)} of its capabilities was asked, not {first}"
                )
            items += page
            if len(items) >= total:
                return self._read(m.capabilities, items[:total])

    # --- models ----------------------------------------------------------------------------------

    def upload(self, data: bytes, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Send a model into the board's RAM."""
        payload = self.link.ask(m.Command.MODEL_BEGIN, m.SIZE_CRC.pack(len(data), zlib.crc32(data)))
        chunk, _ = self._unpack(m.CHUNK_SIZE, payload)
        chunk = min(chunk, self.link.max_payload - m.U32.size)
        if chunk <= 0:
            raise self._contradiction(f"it takes chunks of {chunk} bytes")
        for at in range(0, len(data), chunk):
            part = data[at : at + chunk]
            (received,) = self._unpack(
                m.U32, self.link.ask(m.Command.MODEL_CHUNK, m.U32.pack(at) + part)
            )
            if received != at + len(part):
                raise self._contradiction(
                    f"it has {received} bytes of a model, {at + len(part)} were sent"
                )
            if on_progress is not None:
                on_progress(received, len(data))
        self._same_model(self.link.ask(m.Command.MODEL_END), data)

    def select(self, index: int, data: bytes) -> None:
        """Use the model that is compiled in as number `index`; `data` is its file."""
        self._same_model(self.link.ask(m.Command.MODEL_SELECT, m.INDEX.pack(index, 0)), data)

    def stored_index(self, data: bytes) -> int | None:
        """The number of the compiled-in model that is `data`, if there is one."""
        crc = zlib.crc32(data)
        return next(
            (i for i, s in enumerate(self.says.models) if (s.size, s.crc) == (len(data), crc)), None
        )

    def _same_model(self, payload: bytes, data: bytes) -> None:
        if self._unpack(m.SIZE_CRC, payload) != (len(data), zlib.crc32(data)):
            raise self._contradiction("size or CRC of its model is not that of the file")

    # --- running ---------------------------------------------------------------------------------

    def arena(self, size: int = 0) -> int:
        """Set the size of the arena in bytes; 0 takes all available memory. Returns the bytes
        set."""
        (granted,) = self._unpack(m.U32, self.link.ask(m.Command.ARENA, m.U32.pack(size)))
        if size and granted != size:
            raise self._contradiction(f"an arena of {size} bytes was asked, it gave {granted}")
        return granted

    def allocate(
        self, *, smallest: bool = False, lean: bool = False, step: int = 16, lowest: int = 0
    ) -> BoardAllocation:
        """Run AllocateTensors. `smallest`: first find the smallest arena, in steps of `step` bytes,
        from `lowest` on. `lean`: use the lean library."""
        flags = m.AllocateFlag.SMALLEST * smallest | m.AllocateFlag.LEAN * lean
        payload = self.link.ask(m.Command.ALLOCATE, m.ALLOCATE.pack(flags, step, lowest))
        arena, used, head, tail, least, ticks, stack, inputs, outputs, reply_flags, trials = (
            self._unpack(m.ALLOCATE_REPLY, payload)
        )
        if bool(reply_flags & 1) != lean:
            raise self._contradiction("the lean library is " + ("not " * lean) + "in use")
        if smallest and not lowest <= least <= arena:
            raise self._contradiction(f"its smallest arena has {least} bytes, of {arena}")
        return BoardAllocation(
            arena=arena,
            used=used,
            head=if_known(head),
            tail=if_known(tail),
            smallest=if_known(least),
            ticks=ticks,
            stack=if_known(stack),
            inputs=inputs,
            outputs=outputs,
            lean=bool(reply_flags & 1),
            trials=trials,
        )

    def tensor(self, output: bool, index: int) -> BoardTensor:
        """An input or output of the allocated model."""
        payload = self.link.ask(m.Command.TENSOR, m.TENSOR.pack(output, 0, index))
        kind, rank, _, size = self._unpack(m.TENSOR_REPLY, payload)
        if size > MOST_INPUT:
            raise self._contradiction(f"a tensor of {size} bytes")
        shape = self._read(lambda p: m.words(p, rank), payload[m.TENSOR_REPLY.size :])
        return BoardTensor(kind, size, shape)

    def set_inputs(self, values: list[bytes]) -> None:
        """Send the bytes of all inputs."""
        room = self.link.max_payload - m.PART.size
        for index, data in enumerate(values):
            for at in range(0, max(1, len(data)), room):
                part = m.PART.pack(index, 0, at) + data[at : at + room]
                (size,) = self._unpack(m.U32, self.link.ask(m.Command.INPUT, part))
                if size != len(data):
                    raise self._contradiction(
                        f"its input {index} has {size} bytes, not {len(data)}"
                    )

    def invoke(
        self, count: int = 1, *, seed: int | None = None, log: bool = False, operators: bool = False
    ) -> Invocation:
        """Run the model `count` times. `seed`: seed of generated inputs; None uses the inputs that
        were set. `log`: whether ticks are logged. `operators`: whether operators are timed, too."""
        flags = m.InvokeFlag.FILL * (seed is not None) | m.InvokeFlag.LOG * log
        flags |= m.InvokeFlag.OPERATORS * operators
        request = m.INVOKE.pack(flags, count, seed or 0)
        payload = self.link.ask(m.Command.INVOKE, request, steps=count)
        runs, outputs, events, entries, stack = self._unpack(m.INVOKE_REPLY, payload)
        if not 1 <= runs <= count or entries > MOST_INPUT:
            raise self._contradiction(f"{runs} runs of {count}, {entries} entries of the log")
        crcs = self._read(lambda p: m.words(p, outputs), payload[m.INVOKE_REPLY.size :])
        return Invocation(runs, events, entries, if_known(stack), crcs)

    def log(self) -> list[int]:
        """All entries of the log, in ticks."""
        ticks: list[int] = []
        while True:
            payload = self.link.ask(m.Command.LOG, m.U32.pack(len(ticks)))
            entries, first = self._unpack(m.LOG_REPLY, payload)
            entries_read = self._read(m.words, payload[m.LOG_REPLY.size :])
            if (
                first != len(ticks)
                or entries > MOST_INPUT
                or (not entries_read and entries > first)
            ):
                raise self._contradiction(
                    f"{len(entries_read)} entries of a log of {entries}, from {first} on"
                )
            ticks += entries_read
            if len(ticks) >= entries:
                return ticks[:entries]

    def output(self, index: int, size: int) -> bytes:
        """The bytes of an output of `size` bytes. Its CRC is checked."""
        data = b""
        while True:
            payload = self.link.ask(m.Command.OUTPUT, m.PART.pack(index, 0, len(data)))
            total, crc, at = self._unpack(m.OUTPUT_REPLY, payload)
            part = payload[m.OUTPUT_REPLY.size :]
            if total != size or at != len(data) or len(data) + len(part) > size:
                raise self._contradiction(f"output {index} has {total} bytes, not {size}")
            if not part and len(data) < size:
                raise self._contradiction(f"output {index} ends after {len(data)} of {size} bytes")
            data += part
            if len(data) == size:
                if zlib.crc32(data) != crc:
                    raise self._contradiction(f"output {index} has another CRC than it says")
                return data

    def memory(self) -> BoardMemory:
        """Bytes of static RAM, heap and stack."""
        fields = self._unpack(m.MEMORY_REPLY, self.link.ask(m.Command.MEMORY))
        return BoardMemory(*map(if_known, fields))

    # --- checking --------------------------------------------------------------------------------

    def _unpack(self, layout: m.Layout, payload: bytes) -> tuple[int, ...]:
        return self._read(lambda p: m.unpack(layout, p), payload)

    def _read(self, read: Callable[[P], R], payload: P) -> R:
        try:
            return read(payload)
        except m.MessageError as error:
            raise self._contradiction(str(error)) from error

    def _contradiction(self, how: str) -> DeviceError:
        return DeviceError(
            f"the board on {self.link.line.name} contradicts itself or the protocol: {how}; flash "
            "the firmware again, or report it with the firmware's version"
        )


def connect(line: Line, timing: Timing | None = None) -> BoardClient:
    """Begin a session. The line is closed if that fails."""
    try:
        return BoardClient(Link(line, timing))
    except BaseException:
        line.close()
        raise
