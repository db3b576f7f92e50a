"""The board's side of the protocol in Python: answers frames as the firmware does.

    Frame -> Responder -> Engine (any implementation of TFLM)
                 |-> replies: WORKING ..., then the final one

It mirrors the firmware's command loop; `virtual_board` puts it on a pseudo-terminal. It must not
know lines or processes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import FIRST_PAYLOAD, Frame

SCHEMA_VERSION = 3
_IDENTIFIER = slice(4, 8)


class RefusedRequest(Exception):  # noqa: N818 (a refusal is an answer, not a failure)
    """The request is answered with an error reply."""

    def __init__(self, code: m.Error, detail: int = 0, text: str = "") -> None:
        super().__init__(text)
        self.code, self.detail, self.text = code, detail, text


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of AllocateTensors, in bytes and ticks. inputs, outputs: (TfLiteType, bytes,
    shape) of each tensor."""

    used: int
    head: int
    tail: int
    ticks: int
    inputs: tuple[tuple[int, int, tuple[int, ...]], ...]
    outputs: tuple[tuple[int, int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run. ticks: the total. outputs: the bytes of each output. operators: ticks of each
    operator that began; empty if operators are not timed."""

    ticks: int
    outputs: list[bytes]
    operators: tuple[int, ...] = ()


class Engine(Protocol):
    """The TFLM that serves the requests. Every method may raise RefusedRequest."""

    def load(self, data: bytes, arena: int) -> Loaded:
        """Make an interpreter for a model in an arena of `arena` bytes, and allocate its
        tensors."""
        ...

    def fits(self, data: bytes, arena: int) -> bool:
        """Whether AllocateTensors succeeds in an arena of `arena` bytes. Discards the loaded
        interpreter."""
        ...

    def run(self, inputs: list[bytes], number: int) -> RunResult:
        """Set the inputs and invoke. `number`: the index of this run in the request."""
        ...

    def fill(self, seed: int) -> list[bytes]:
        """Generate inputs of the loaded model."""
        ...


@dataclass
class _State:
    """The state of a session: what HELLO keeps, and what commands change."""

    expected: tuple[int, int] | None = None
    model: bytearray = field(default_factory=bytearray)
    complete: bool = False
    in_flash: bool = False
    arena: int = 0
    loaded: Loaded | None = None
    inputs: list[bytearray] = field(default_factory=list[bytearray])
    outputs: list[bytes] | None = None
    log: list[int] = field(default_factory=list[int])


class Responder:
    """One board. `says`: its capabilities. `largest`: the most bytes of payload that it accepts.
    `models`: the models that are compiled in, as `says` lists them."""

    def __init__(
        self,
        engine: Engine,
        says: m.Capabilities,
        *,
        largest: int = 1024,
        reset: int = 0,
        models: Sequence[bytes] = (),
    ) -> None:
        self._models = models
        self._engine, self._says, self._largest, self._reset = engine, says, largest, reset
        self._room = FIRST_PAYLOAD
        self._session = False
        self._done: tuple[int, int, int] | None = None
        self._answered: Frame | None = None
        self._state = _State()
        self.bad_frames = 0
        C = m.Command  # noqa: N806
        self._commands: dict[int, Callable[[bytes], Iterator[bytes | tuple[int, int]]]] = {
            C.HELLO: self._hello, C.CAPABILITIES: self._capabilities, C.MODEL_BEGIN: self._begin,
            C.MODEL_CHUNK: self._chunk, C.MODEL_END: self._end, C.MODEL_SELECT: self._select,
            C.ARENA: self._arena, C.ALLOCATE: self._allocate, C.TENSOR: self._tensor,
            C.INPUT: self._input, C.INVOKE: self._invoke, C.LOG: self._log,
            C.OUTPUT: self._output, C.MEMORY: self._memory,
        }  # fmt: skip

    def answer(self, request: Frame) -> Iterator[Frame]:
        """The replies to a frame, the final one last."""
        if request.type >= m.REPLY or request.status:
            return
        key = request.type, request.sequence, zlib.crc32(request.payload)
        if key == self._done and request.type != m.Command.HELLO and self._answered:
            yield self._answered
            return
        final = Frame(request.type | m.REPLY, m.DONE, request.sequence)
        try:
            for progress in self._command(request)(request.payload):
                if isinstance(progress, tuple):
                    yield Frame(final.type, m.WORKING, final.sequence, m.PROGRESS.pack(*progress))
                else:
                    final = Frame(final.type, m.DONE, final.sequence, progress)
        except RefusedRequest as no:
            payload = m.error_payload(no.detail & m.UNKNOWN, no.text)
            final = Frame(final.type, int(no.code), final.sequence, payload)
        self._done, self._answered = key, final
        yield final

    def _command(self, request: Frame) -> Callable[[bytes], Iterator[bytes | tuple[int, int]]]:
        if request.type != m.Command.HELLO and not self._session:
            raise RefusedRequest(m.Error.NO_SESSION)
        if request.type not in self._commands:
            raise RefusedRequest(m.Error.UNKNOWN_COMMAND)
        return self._commands[request.type]

    # --- session ---------------------------------------------------------------------------------

    def _hello(self, payload: bytes) -> Iterator[bytes]:
        magic, _, _, room, nonce = _read(m.HELLO, payload)
        if magic != m.MAGIC:
            raise RefusedRequest(m.Error.BAD_VALUE, m.MAGIC)
        self._session, self._done = True, None
        self._room = max(FIRST_PAYLOAD, min(room, self._largest))
        yield m.HELLO_REPLY.pack(m.MAGIC, m.MAJOR, m.MINOR, self._largest, nonce, self._reset)

    def _capabilities(self, payload: bytes) -> Iterator[bytes]:
        (first,) = _read(m.U16, payload)
        items = m.items_of(self._says)
        if first > len(items):
            raise RefusedRequest(m.Error.BAD_VALUE, len(items))
        yield m.pack_items(items, first, self._room)

    # --- models ----------------------------------------------------------------------------------

    def _begin(self, payload: bytes) -> Iterator[bytes]:
        size, crc = _read(m.SIZE_CRC, payload)
        if size > self._says.model_room:
            raise RefusedRequest(m.Error.MODEL_TOO_BIG, self._says.model_room)
        self._state = _State(expected=(size, crc))
        yield m.CHUNK_SIZE.pack(self._largest - m.U32.size, 0)

    def _chunk(self, payload: bytes) -> Iterator[bytes]:
        state = self._state
        (offset,) = _read(m.U32, payload)
        data = payload[m.U32.size :]
        if state.expected is None or state.complete:
            raise RefusedRequest(m.Error.BAD_STATE, m.Command.MODEL_BEGIN)
        if offset != len(state.model):
            raise RefusedRequest(m.Error.BAD_VALUE, len(state.model))
        if offset + len(data) > state.expected[0]:
            raise RefusedRequest(m.Error.BAD_LENGTH, state.expected[0] - offset)
        state.model += data
        yield m.U32.pack(len(state.model))

    def _end(self, payload: bytes) -> Iterator[bytes]:
        state = self._state
        if state.expected is None or state.complete:
            raise RefusedRequest(m.Error.BAD_STATE, m.Command.MODEL_BEGIN)
        size, crc = state.expected
        if len(state.model) != size:
            raise RefusedRequest(m.Error.BAD_LENGTH, len(state.model))
        actual = zlib.crc32(state.model)
        if actual != crc:
            self._state = _State()
            raise RefusedRequest(m.Error.MODEL_DAMAGED, actual)
        if bytes(state.model[_IDENTIFIER]) != b"TFL3":
            self._state = _State()
            raise RefusedRequest(m.Error.MODEL_UNSUPPORTED, 0, "no TFL3 flatbuffer")
        state.complete = True
        yield m.SIZE_CRC.pack(size, crc)

    def _select(self, payload: bytes) -> Iterator[bytes]:
        index, _ = _read(m.INDEX, payload)
        if index >= len(self._models):
            raise RefusedRequest(m.Error.BAD_VALUE, len(self._models))
        data = self._models[index]
        self._state = _State(model=bytearray(data), complete=True, in_flash=True)
        yield m.SIZE_CRC.pack(len(data), zlib.crc32(data))

    # --- running ---------------------------------------------------------------------------------

    def _arena(self, payload: bytes) -> Iterator[bytes]:
        (size,) = _read(m.U32, payload)
        state = self._state
        if not state.complete:
            raise RefusedRequest(m.Error.BAD_STATE, m.Command.MODEL_BEGIN)
        room = self._says.arena_room
        if m.Feature.SHARED_STORE in self._says.features and not state.in_flash:
            room = max(0, room - len(state.model)) // 16 * 16
        if size > room:
            raise RefusedRequest(m.Error.ARENA_TOO_BIG, room)
        state.arena, state.loaded, state.outputs = size or room, None, None
        yield m.U32.pack(state.arena)

    def _allocate(self, payload: bytes) -> Iterator[bytes | tuple[int, int]]:
        flags, step, lowest = _read(m.ALLOCATE, payload)
        state = self._state
        if not state.complete or not state.arena:
            missing = m.Command.ARENA if state.complete else m.Command.MODEL_BEGIN
            raise RefusedRequest(m.Error.BAD_STATE, missing)
        if flags & ~int(m.AllocateFlag.SMALLEST):
            raise RefusedRequest(m.Error.BAD_VALUE, m.AllocateFlag.LEAN)
        yield 0, m.UNKNOWN
        data, smallest, trials = bytes(state.model), m.UNKNOWN, 0
        state.loaded = state.outputs = None
        loaded = self._engine.load(data, state.arena)
        if flags & m.AllocateFlag.SMALLEST:
            step = step or 16
            low, high = -(-lowest // step) - 1, -(-state.arena // step)
            while high - low > 1:
                trials += 1
                yield trials, m.UNKNOWN
                middle = (low + high) // 2
                if self._engine.fits(data, max(middle * step, 1)):
                    high = middle
                else:
                    low = middle
            smallest = min(high * step, state.arena)
            loaded = self._engine.load(data, state.arena)
        state.loaded, state.inputs = loaded, []
        yield m.ALLOCATE_REPLY.pack(
            state.arena, loaded.used, loaded.head, loaded.tail, smallest, loaded.ticks, m.UNKNOWN,
            len(loaded.inputs), len(loaded.outputs), 0, trials,
        )  # fmt: skip

    def _require_loaded(self) -> Loaded:
        if self._state.loaded is None:
            raise RefusedRequest(m.Error.BAD_STATE, m.Command.ALLOCATE)
        return self._state.loaded

    def _tensor(self, payload: bytes) -> Iterator[bytes]:
        side, _, index = _read(m.TENSOR, payload)
        loaded = self._require_loaded()
        tensors = loaded.outputs if side else loaded.inputs
        if side > 1 or index >= len(tensors):
            raise RefusedRequest(m.Error.BAD_VALUE, len(tensors))
        kind, size, shape = tensors[index]
        yield m.TENSOR_REPLY.pack(kind, len(shape), 0, size) + b"".join(map(m.U32.pack, shape))

    def _input(self, payload: bytes) -> Iterator[bytes]:
        index, _, offset = _read(m.PART, payload)
        data, state, loaded = payload[m.PART.size :], self._state, self._require_loaded()
        if index == 0 and offset == 0:
            state.inputs = [bytearray()]
        sizes = [size for _, size, _ in loaded.inputs]
        filled = [len(part) for part in state.inputs]
        if filled and len(filled) < len(sizes) and filled[-1] == sizes[len(filled) - 1]:
            state.inputs.append(bytearray())
        if not state.inputs or index != len(state.inputs) - 1 or index >= len(sizes):
            raise RefusedRequest(m.Error.BAD_VALUE, max(0, len(state.inputs) - 1))
        part = state.inputs[index]
        if offset != len(part):
            raise RefusedRequest(m.Error.BAD_VALUE, len(part))
        if offset + len(data) > sizes[index]:
            raise RefusedRequest(m.Error.BAD_LENGTH, sizes[index] - offset)
        part += data
        yield m.U32.pack(sizes[index])

    def _invoke(self, payload: bytes) -> Iterator[bytes | tuple[int, int]]:
        flags, count, seed = _read(m.INVOKE, payload)
        state, loaded = self._state, self._require_loaded()
        if flags & m.InvokeFlag.FILL:
            inputs = self._engine.fill(seed)
        else:
            inputs = [bytes(part) for part in state.inputs]
            if [len(i) for i in inputs] != [size for _, size, _ in loaded.inputs]:
                raise RefusedRequest(m.Error.BAD_STATE, m.Command.INPUT)
        if not count or (count > 1 and not flags & m.InvokeFlag.FILL):
            raise RefusedRequest(m.Error.BAD_VALUE, 1)
        state.inputs, state.outputs = [], None
        runs: list[RunResult] = []
        for done in range(count):
            yield done, count
            runs.append(self._engine.run(inputs, done))
        state.outputs = runs[-1].outputs
        events, first = len(runs[0].operators), runs[0].outputs
        if flags & m.InvokeFlag.LOG:
            state.log, count = self._take_log(runs, bool(flags & m.InvokeFlag.OPERATORS))
        head = m.INVOKE_REPLY.pack(count, len(first), events, len(state.log), m.UNKNOWN)
        yield head + b"".join(m.U32.pack(zlib.crc32(data)) for data in first)

    def _take_log(self, runs: list[RunResult], operators: bool) -> tuple[list[int], int]:
        """The log, and the number of runs in it: as many whole runs as fit into `log_room` entries,
        but at least one, which may be cut off."""
        entries = [[r.ticks, *(r.operators if operators else ())] for r in runs]
        room = self._says.log_room
        run_count = max(1, min(len(entries), room // max(1, len(entries[0]))))
        flat = [min(ticks, m.UNKNOWN) for run in entries[:run_count] for ticks in run]
        return flat[:room], run_count

    def _log(self, payload: bytes) -> Iterator[bytes]:
        (first,) = _read(m.U32, payload)
        log, room = self._state.log, (self._room - m.LOG_REPLY.size) // 4
        if first > len(log):
            raise RefusedRequest(m.Error.BAD_VALUE, len(log))
        part = log[first : first + room]
        yield m.LOG_REPLY.pack(len(log), first) + b"".join(map(m.U32.pack, part))

    def _output(self, payload: bytes) -> Iterator[bytes]:
        index, _, offset = _read(m.PART, payload)
        outputs = self._state.outputs
        if outputs is None:
            raise RefusedRequest(m.Error.BAD_STATE, m.Command.INVOKE)
        if index >= len(outputs) or offset > len(outputs[index]):
            raise RefusedRequest(m.Error.BAD_VALUE, len(outputs))
        data = outputs[index]
        part = data[offset : offset + self._room - m.OUTPUT_REPLY.size]
        yield m.OUTPUT_REPLY.pack(len(data), zlib.crc32(data), offset) + part

    def _memory(self, payload: bytes) -> Iterator[bytes]:
        yield m.MEMORY_REPLY.pack(*[m.UNKNOWN] * 7, self.bad_frames)


def _read(layout: m.Layout, payload: bytes) -> tuple[int, ...]:
    try:
        return m.unpack(layout, payload)
    except m.MessageError:
        raise RefusedRequest(m.Error.BAD_LENGTH, layout.size) from None
