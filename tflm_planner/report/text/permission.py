"""Says in sentences what each permission saves."""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.report.text.bounds import figure
from tflm_planner.support.words import count
from tflm_planner.tflm.arena.uncertainty import BoundKind


def permission_notes(
    plain: int, same_firmware: int | None, best: int, registered: Sequence[str], bound: BoundKind
) -> list[str]:
    """Notes on what tiles save without new operators, and with them.

    plain: bytes with order and plan alone. same_firmware: bytes of the best tiling that needs no
    new operator; None if there is none. best: bytes of the model that was made. registered:
    operators that the firmware must register for it. bound: whether bytes are exact, enough, or "at
    least".
    """
    without_new = best
    if registered:
        without_new = plain if same_firmware is None else min(same_firmware, plain)
    sizes = figure(plain, bound), figure(without_new, bound)
    notes = [f"operators as they are: {sizes[0]}; changed, same firmware: {sizes[1]}"]
    if registered and best < without_new:
        more = count(len(registered), "more operator", "more operators")
        notes.append(f"with {more} in the firmware: {figure(best, bound)}")
    return notes
