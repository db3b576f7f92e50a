"""Words for messages that any floor may write."""


def count(number: int, one: str, many: str) -> str:
    """`number` with its noun in singular or plural."""
    return f"{number:,} {one if number == 1 else many}"
