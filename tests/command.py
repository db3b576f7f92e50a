"""One run of the command line, in this process."""

from __future__ import annotations

import sys

import pytest

from tflm_planner.cli import app


class Run:
    """One run of the command in this process."""

    def __init__(self, arguments: list[object], capture: pytest.CaptureFixture[str]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["tflm-plan", *map(str, arguments)])
            with pytest.raises(SystemExit) as caught:
                app.main()
        self.code = caught.value.code or 0
        self.out, self.err = capture.readouterr()

    def refused(self, code: int) -> str:
        """Check an error: its code, one line, nothing on stdout. Return the line."""
        assert self.code == code, self.err
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("tflm-plan: error: ")
        assert line.isprintable()
        return line
