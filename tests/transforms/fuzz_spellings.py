"""Random spellings: `python -m tests.transforms.fuzz_spellings [--first N] [--count N]`."""

from tests.transforms.fuzzing import fuzz
from tests.transforms.test_spelling import faults

if __name__ == "__main__":
    fuzz(faults)
