"""Lists serial ports and opens one of them, through pyserial.

It must not know frames. Every failure of a line is a LineError that says what to try.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

from tflm_planner.support.errors import DeviceError

BAUD = 115_200
"""The baud rate of UART firmware; USB CDC and pseudo-terminals ignore it."""
_WRITE_LIMIT = 5.0
_BITS = 10
"""Bits of a byte on a UART, with start and stop bits."""
_KNOWN_USB = {
    0x2341: "Arduino", 0x2A03: "Arduino", 0x1FC9: "NXP", 0x0483: "ST", 0x2E8A: "Raspberry Pi",
    0x239A: "Adafruit", 0x1366: "Segger", 0x0D28: "Mbed DAPLink", 0x2886: "Seeed",
    0x303A: "Espressif", 0x10C4: "Silicon Labs CP210x", 0x1A86: "WCH CH34x", 0x0403: "FTDI",
}  # fmt: skip
"""USB vendors of boards and of the serial bridges on them."""


class LineError(DeviceError):
    """The line itself failed: there is no port, no permission, or the board was unplugged."""


class Line(Protocol):
    """Bytes to and from a board."""

    name: str
    seconds_a_byte: float

    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises LineError if the line is gone."""
        ...

    def read(self, seconds: float) -> bytes:
        """The bytes that have arrived, after waiting up to `seconds` for the first one. Raises
        LineError if the line is gone."""
        ...

    def close(self) -> None:
        """Close the port."""
        ...


class SerialLine:
    """A port of this machine."""

    def __init__(self, name: str, baud: int = BAUD) -> None:
        import serial

        self.name, self.seconds_a_byte = name, _BITS / baud
        try:
            self._port: Any = serial.Serial(
                name, baud, timeout=0, write_timeout=_WRITE_LIMIT, exclusive=True
            )
        except (OSError, ValueError) as error:  # SerialException is an OSError
            raise LineError(f"cannot open {name}: {_reason(error)}") from error

    def write(self, data: bytes) -> None:
        """As `Line.write`. Also raises LineError if the board accepts no bytes for some seconds."""
        try:
            self._port.write(data)
        except (OSError, TypeError) as error:
            raise LineError(self._describe_gone_port(error)) from error

    def read(self, seconds: float) -> bytes:
        """As `Line.read`."""
        try:
            self._port.timeout = max(0.0, seconds)
            first: bytes = self._port.read(1)
            return first + self._port.read(self._port.in_waiting) if first else b""
        except (OSError, TypeError) as error:
            raise LineError(self._describe_gone_port(error)) from error

    def close(self) -> None:
        """As `Line.close`. Closing a port that is gone is not an error."""
        try:
            self._port.close()
        except (OSError, TypeError):
            return

    def _describe_gone_port(self, error: Exception) -> str:
        return (
            f"the line {self.name} broke ({_reason(error)}): was the board unplugged or reset? "
            "Plug it in and run the command again"
        )


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    reasons = {
        2: "there is no such port; see `tflm-plan ports`",
        13: "no permission; add yourself to the group that owns it (dialout, uucp)",
        16: "another program has it open; close its serial monitor",
        11: "another program has it open; close its serial monitor",
    }
    if "returned no data" in str(error):  # pyserial's way to say that the port is gone
        return "the port is gone"
    return reasons.get(number or 0) or " ".join(str(error).split())[:200] or type(error).__name__


def ports() -> list[tuple[str, str, bool]]:
    """All ports as (port, description, whether its USB id is that of a board), likely boards
    first."""
    from serial.tools import list_ports

    listed_ports: list[tuple[str, str, bool]] = []
    for port in list_ports.comports():
        maker = _KNOWN_USB.get(port.vid or 0)
        description = " ".join(str(w) for w in (port.manufacturer or maker, port.product) if w)
        usb = f" [{port.vid:04x}:{port.pid:04x}]" if port.vid is not None else ""
        listed_ports.append(
            (port.device, f"{description or port.description}{usb}", maker is not None)
        )
    return sorted(listed_ports, key=lambda p: (not p[2], p[0]))


def choose_port(given: str | None) -> str:
    """The given port, or the only one with a board's USB id. Raises LineError if there is no such
    port, or more than one."""
    if given is not None:
        return given
    likely = [(name, description) for name, description, is_board in ports() if is_board]
    if len(likely) == 1:
        return likely[0][0]
    if not likely:
        raise LineError(
            "no board found: no serial port has the USB id of one. Plug it in, or name its port "
            "with --port (tflm-plan virtual-board opens one without hardware)"
        )
    choices = ", ".join(f"{name} ({description})" for name, description in likely)
    raise LineError(f"several boards found: {choices}; choose one with --port")


def reopen(name: str, baud: int, seconds: float) -> SerialLine:
    """Open a port again after a reset of the board, during which the port disappears for a while.
    Raises LineError if it does not come back within `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return SerialLine(name, baud)
        except LineError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
