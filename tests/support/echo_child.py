"""A child process for tests: says who and where it is, then repeats words; `die` kills it."""

from __future__ import annotations

import json
import os
import signal
import sys


def main() -> None:
    """Serve until standard input ends."""
    about = {
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "arguments": sys.argv[1:],
        "folder": os.getcwd(),  # noqa: PTH109
        "variable": os.environ.get("TFLM_PLAN_TEST"),
        "loaded": "fractions" in sys.modules,
    }
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if word == "fail":
            raise ValueError("as it was told to")
        if word == "leave":
            sys.exit(7)
        print(word.upper(), flush=True)


if __name__ == "__main__":
    main()
