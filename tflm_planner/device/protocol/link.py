"""Requests and replies on a line: sequence numbers, repeats, time limits, and the handshake.

    request -> encode -> line ... line -> Receiver -> reply with its sequence -> payload

See sections 1, 2 and 6 of schema/protocol.md. It must not know what commands do.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import (
    FIRST_PAYLOAD,
    MOST_PAYLOAD,
    Frame,
    Receiver,
    encode,
)
from tflm_planner.device.protocol.line import Line
from tflm_planner.support.errors import DeviceError

_MOST_TRIALS = 64
"""The most steps that a command may have if the host does not know their number. A bisection has at
most 32."""


class NoAnswerError(DeviceError):
    """No reply came in time."""


class BoardResetError(DeviceError):
    """The board was reset in the middle of a session."""


class BoardRefusedError(DeviceError):
    """The board answered with an error. code: as in section 2, or the bare number."""

    def __init__(self, message: str, code: int, detail: int, text: str) -> None:
        super().__init__(message)
        self.code, self.detail, self.text = code, detail, text


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits in seconds. answer: wait for an answer before a request is repeated. repeats: how
    often a request is repeated. patience: how long the board may be silent after it said that it is
    working. greeting: how long to look for the board at first."""

    answer: float = 1.0
    repeats: int = 3
    patience: float = 60.0
    greeting: float = 6.0


@dataclass(frozen=True, slots=True)
class Greeting:
    """The board's answer to HELLO. reset: the reason of the board's last reset."""

    major: int
    minor: int
    max_payload: int
    reset: str


class Link:
    """One session with a board. `on_work(done, total)` is called with the progress of long
    commands."""

    def __init__(self, line: Line, timing: Timing | None = None) -> None:
        self.line, self.timing = line, timing or Timing()
        self.on_work: Callable[[int, int], None] | None = None
        self.repeated = 0
        self._receiver = Receiver()
        self._sequence = secrets.randbelow(1 << 16)
        self.max_payload = FIRST_PAYLOAD

    # --- the handshake ---------------------------------------------------------------------------

    def greet(self) -> Greeting:
        """Begin a session. Raises DeviceError if no board with our firmware answers, or if its
        protocol version differs."""
        started = time.monotonic()
        while True:
            try:
                greeting = self._hello()
                break
            except NoAnswerError:
                if time.monotonic() - started > self.timing.greeting:
                    raise NoAnswerError(self._describe_stranger()) from None
        if greeting.major != m.MAJOR:
            older = greeting.major < m.MAJOR
            raise DeviceError(
                f"the firmware on {self.line.name} speaks protocol {greeting.major}."
                f"{greeting.minor}, this host {m.MAJOR}.{m.MINOR}: "
                + ("flash the firmware of this version" if older else "update tflm-plan")
            )
        self.max_payload = min(max(greeting.max_payload, FIRST_PAYLOAD), MOST_PAYLOAD)
        return greeting

    def _hello(self) -> Greeting:
        nonce = secrets.randbits(32)
        frame = self._next(
            m.Command.HELLO, m.HELLO.pack(m.MAGIC, m.MAJOR, m.MINOR, MOST_PAYLOAD, nonce)
        )
        self.line.write(encode(frame))
        deadline = time.monotonic() + self.timing.answer
        while True:
            reply = self._reply(frame, deadline)
            if reply.status != m.DONE:
                raise DeviceError(
                    f"what is on {self.line.name} refuses to begin (status {reply.status:#04x}): "
                    "another device, or firmware of another make"
                )
            magic, major, minor, most, echoed, reset = self._layout(m.HELLO_REPLY, reply.payload)
            if magic != m.MAGIC:
                raise DeviceError(f"what is on {self.line.name} is no board of ours: wrong magic")
            if echoed == nonce:  # else it answers an earlier host
                return Greeting(major, minor, most, m.RESETS.get(reset, "unknown"))

    def _describe_stranger(self) -> str:
        noise = self._receiver.noise
        if not self._receiver.silent:
            return (
                f"{self.line.name} sends bytes but no frames ({noise:,} bytes; the last: "
                f"{self._receiver.last or 'no end of a frame'}): wrong --baud, or another device"
            )
        return (
            f"nothing answers on {self.line.name}: is the firmware of arduino_runner flashed, and "
            "is this its port?"
        )

    # --- requests --------------------------------------------------------------------------------

    def ask(self, command: m.Command, payload: bytes = b"", steps: int = _MOST_TRIALS) -> bytes:
        """Send a request and return the payload of its reply. steps: the most steps that the
        command can have. Raises BoardRefusedError, BoardResetError, NoAnswerError, LineError, or
        DeviceError if the board reports more steps."""
        frame = self._next(command, payload)
        for attempt in range(1 + self.timing.repeats):
            self.repeated += attempt > 0
            self.line.write(encode(frame))
            reply = self._reply_or_none(frame, self._reply_timeout(len(payload)))
            if reply is not None:
                return self._check_reply(self._final_reply(reply, frame, command, steps), command)
        raise NoAnswerError(self._describe_lost(command))

    def _final_reply(self, reply: Frame, request: Frame, command: m.Command, steps: int) -> Frame:
        """Wait for the final reply, after replies that say that the board is still working.

        The final reply may get lost, or the board may be reset. So the request is repeated at
        growing intervals while nothing arrives. A board that has finished then answers again, and a
        board that was reset says so.
        """
        silent, last = 0.0, -1
        while reply.status == m.WORKING:
            done, total = self._layout(m.PROGRESS, reply.payload)
            self._check_steps(command, done, total, steps)
            if done > last and self.on_work is not None:
                self.on_work(done, total)
            silent, last = (0.0, done) if done > last else (silent, last)
            pause = min(self._reply_timeout(0), self.timing.patience / 8)
            while True:
                pause = min(2 * pause, self.timing.patience - silent)
                started = time.monotonic()
                following = self._reply_or_none(request, pause)
                silent += time.monotonic() - started
                if following is not None:
                    break
                if silent >= self.timing.patience:
                    raise NoAnswerError(self._describe_hanging(command, silent))
                self.repeated += 1
                self.line.write(encode(request))
            reply = following
        return reply

    def _check_steps(self, command: m.Command, done: int, total: int, steps: int) -> None:
        """Raise DeviceError if the board reports more steps than were requested, because it might
        never end."""
        most = steps if total == m.UNKNOWN else min(total, steps)
        if done > most or (total != m.UNKNOWN and total > steps):
            total_words = "an unknown number of" if total == m.UNKNOWN else f"{total:,}"
            raise DeviceError(
                f"the board on {self.line.name} says that it has done {done:,} of {total_words} "
                f"steps of {command.name}, which has {steps:,} at most: it would never end. "
                "Reset it"
            )

    def _reply_timeout(self, size: int) -> float:
        """Seconds within which the first reply to a request of `size` bytes must arrive, given the
        speed of the line."""
        return self.timing.answer + (size + self.max_payload) * self.line.seconds_a_byte

    def _reply_or_none(self, request: Frame, seconds: float) -> Frame | None:
        try:
            return self._reply(request, time.monotonic() + seconds)
        except NoAnswerError:
            return None

    def _check_reply(self, reply: Frame, command: m.Command) -> bytes:
        if reply.status == m.DONE:
            return reply.payload
        if reply.status < m.FIRST_ERROR:
            raise DeviceError(
                f"the board answered {command.name} with status {reply.status}, which this version "
                "does not know; update tflm-plan"
            )
        detail, text = m.read_error(reply.payload)
        if reply.status == m.Error.NO_SESSION:
            raise BoardResetError(
                f"the board was reset during or before {command.name}{self._why_reset()}: a crash, "
                "a watchdog, or a loose plug"
            )
        raise BoardRefusedError(
            _refusal(command, reply.status, detail, text), reply.status, detail, text
        )

    def _reply(self, request: Frame, deadline: float) -> Frame:
        """Wait for the next reply to `request`. Replies with other sequence numbers are late
        answers to earlier requests, and are dropped. Raises NoAnswerError at the deadline."""
        while True:
            while (frame := self._receiver.take()) is not None:
                if frame.type == request.type | m.REPLY and frame.sequence == request.sequence:
                    return frame
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise NoAnswerError("no answer")
            self._receiver.push(self.line.read(remaining))

    def _next(self, command: m.Command, payload: bytes) -> Frame:
        self._sequence = (self._sequence + 1) % (1 << 16)
        return Frame(int(command), 0, self._sequence, payload)

    def _layout(self, layout: m.Layout, payload: bytes) -> tuple[int, ...]:
        try:
            return m.unpack(layout, payload)
        except m.MessageError as error:
            raise DeviceError(f"the board on {self.line.name} answers wrongly: {error}") from error

    # --- what went wrong -------------------------------------------------------------------------

    def _describe_lost(self, command: m.Command) -> str:
        failure = f"no answer to {command.name}, asked {1 + self.timing.repeats} times"
        if self._receiver.bad:
            return f"{failure}; {self._receiver.bad} damaged frames came. Check cable and --baud"
        return f"{failure}: the board hangs, or is gone. Reset it, and check plug and cable"

    def _describe_hanging(self, command: m.Command, seconds: float) -> str:
        hint = "--timeout allows more"
        if command == m.Command.INVOKE:
            hint += "; Invoke may never return: reset the board, and try the original model"
        return f"{command.name} was begun, then no progress for {seconds:.0f} s. {hint}"

    def _why_reset(self) -> str:
        try:
            return f" (it says: {self._hello().reset})"
        except DeviceError:
            return ""


_MEANING = {
    m.Error.UNKNOWN_COMMAND: "the firmware does not know it; flash a newer one",
    m.Error.MODEL_TOO_BIG: "the model does not fit the board's RAM, which has room for {detail:,} "
    "bytes; compile it in: tflm-plan export",
    m.Error.MODEL_DAMAGED: "the model arrived damaged; try again, with another cable",
    m.Error.MODEL_UNSUPPORTED: "the firmware's TFLM does not take the model (schema {detail})",
    m.Error.OPERATOR_MISSING: "operator {text} is not registered in the firmware; add it there",
    m.Error.ARENA_TOO_BIG: "the board has no more than {detail:,} bytes for the arena",
    m.Error.ALLOCATE_FAILED: "AllocateTensors failed in an arena of {detail:,} bytes",
    m.Error.INVOKE_FAILED: "Invoke failed after {detail} runs",
    m.Error.TYPE_UNSUPPORTED: "the firmware makes no inputs of TfLiteType {detail}",
}


def _refusal(command: m.Command, status: int, detail: int, text: str) -> str:
    error = m.Error(status) if status in set(m.Error) else None
    meaning = None if error is None else _MEANING.get(error)
    name = f"error {status:#04x}" if error is None else error.name
    words = meaning.format(detail=detail, text=text or "?") if meaning else f"{name}, {detail}"
    more = f" ({text})" if text and "{text}" not in (meaning or "") else ""
    return f"the board refuses {command.name}: {words}{more}"
