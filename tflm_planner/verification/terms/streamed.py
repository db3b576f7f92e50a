"""Proves a split model: front and back run on terms, as an application runs them.

    back's arena  | boundary .. | the front's arena ("room") | ...    one row of cells
    each strip    rows -> front -> its rows are appended to the boundary; at the end, the back

The memory of the front is an input of the back. The boundary, which collects the front's rows, lies
beside it while the front runs again. Both arenas share cells, so a byte of one that the other
overwrites is found. Halos are filled before the first strip and stay where the front left them.
Strip rows below the image are rubbish. Only the state outlives an image, so a proof for one image
holds for any number of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import (
    DTYPES,
    InexpressibleError,
    OutsideError,
    Symbols,
    Values,
)
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.row_loop.split_input import StripSchedule
from tflm_planner.verification.terms.allowance import Allowance
from tflm_planner.verification.terms.compare import (
    Difference,
    TermsComparison,
    TermsProof,
    check_size,
    conclude,
    first_unequal,
)
from tflm_planner.verification.terms.layout import layout_of
from tflm_planner.verification.terms.machine import Machine
from tflm_planner.verification.terms.memory import ArenaStore
from tflm_planner.verification.terms.stores import SeparateStore


@dataclass(frozen=True)
class Halves:
    """Front and back with their plans, and the schedule of strips by which the front runs."""

    front: Model
    back: Model
    strips: StripSchedule


def prove_pair_by_terms(original: Model, halves: Halves, kernels: TargetKernels) -> TermsProof:
    """Whether front and back, each in the arena that it is planned for, together compute the same
    function of every input as the original."""

    def begin() -> TermsComparison:
        size = original.file_size
        for model, times in ((original, 1), (halves.back, 1), (halves.front, halves.strips.turns)):
            check_size(model, size, times)
        if any(carried_plan(model) is None for model in (halves.front, halves.back)):
            raise InexpressibleError("a half carries no plan")
        if any(has_side_effects(op) for op in halves.front.ops()):
            raise InexpressibleError("the front has a state of its own")
        return _PairComparison(original, halves, kernels)

    return conclude(begin)


class _PairComparison:
    def __init__(self, original: Model, halves: Halves, kernels: TargetKernels) -> None:
        self._original, self._halves, self._kernels = original, halves, kernels
        self._mixer = Mixer()
        self._symbols = Symbols(self._mixer)
        self._image = self._symbols.of_name(original.main.inputs[0].shape or (), "input", 0)

    @property
    def made(self) -> int:
        """How many elements have been made."""
        return self._mixer.made

    def difference(self) -> Difference | None:
        """What differs. Loops run with both orders of copies that releases of TFLM have."""
        loops = any(op.kind == "WHILE" for m in self._models() for op in m.ops())
        wrong = None
        for late in (False, True)[: 1 + loops]:
            wrong = wrong or self._difference(late)
        return wrong

    def _allowance(self) -> Allowance:
        return Allowance(self._original.file_size)

    def _models(self) -> tuple[Model, Model]:
        return self._halves.front, self._halves.back

    def _difference(self, late: bool) -> Difference | None:
        halves = self._halves
        expected, at_boundary, state = self._run_original()
        layout = layout_of(halves.back, self._kernels)
        arena = ArenaStore(layout, self._mixer, self._symbols, late_copies=late)
        back = Machine(halves.back, arena, allowance=self._allowance())
        try:
            self._run_front(arena)
            boundary = arena.read(halves.back.main.inputs[0])
            (actual,) = back.run([None] * len(halves.back.main.inputs))
        except OutsideError as wrong:
            return Difference(str(wrong))
        for i, (ours, theirs) in enumerate(zip(expected, actual, strict=True)):
            where = first_unequal(ours, theirs, self._symbols)
            if where is not None:
                half = self._half_at_fault(at_boundary, boundary)
                return Difference(f"output {i} differs at element {where}{half}")
        return None if np.array_equal(state, back.states[0]) else Difference("the state differs")

    def _run_original(self) -> tuple[list[Values], Values | None, Residues]:
        """The original's outputs, its tensor at the end of the front (None if it has no single such
        tensor), and the state that it leaves."""
        name = self._halves.back.main.inputs[0].name
        at_boundary: list[Values] = []

        def look(op: Op, results: list[Values]) -> None:
            at_boundary.extend(
                v for t, v in zip(op.outputs, results, strict=True) if t.name == name
            )

        store = SeparateStore(self._original, self._mixer, self._symbols)
        machine = Machine(self._original, store, observe=look)
        (outputs,) = machine.run([self._image])
        return outputs, at_boundary[0] if len(at_boundary) == 1 else None, machine.states[0]

    def _half_at_fault(self, expected: Values | None, boundary: Values) -> str:
        if expected is None:
            return ""
        where = first_unequal(expected, boundary, self._symbols)
        if where is None:
            return "; what the front makes is right, the back is wrong"
        return f"; element {where} of what the front makes is wrong before the back begins"

    # --- what the application does ---

    def _run_front(self, back: ArenaStore) -> None:
        """Run the front on all strips of one image, and append its rows to the back's input."""
        front, strips = self._halves.front, self._halves.strips
        boundary, room = self._halves.back.main.inputs
        arena = ArenaStore(
            layout_of(front, self._kernels),
            self._mixer,
            self._symbols,
            back.room_in(room),
            late_copies=back.late_copies,
        )
        machine = Machine(front, arena, allowance=self._allowance())
        inputs = front.main.inputs
        for (index, _), value in zip(strips.states, strips.fills, strict=True):
            arena.write(inputs[index], _fill(inputs[index], value))
        row = boundary.elements // strips.result_height
        for turn in range(strips.turns):
            arena.write(inputs[0], self._strip(inputs[0], turn))
            if strips.clock:
                arena.write(inputs[1], _fill(inputs[1], turn * strips.clock))
            ((rows, *_),) = machine.run([None] * len(inputs))
            back.poison(room, arena.head)  # kernels may use memory above the head temporarily
            first = turn * strips.made - strips.delay
            begin, end = max(first, 0), min(first + strips.made, strips.result_height)
            if begin < end:
                elements = slice((begin - first) * row, (end - first) * row)
                back.write_some(boundary, begin * row, rows.reshape((rows.size,)).at((elements,)))

    def _strip(self, rows: Tensor, turn: int) -> Values:
        """The rows of one strip: rows of the image, and rubbish below the image."""
        strips = self._halves.strips
        row = self._image.size // strips.height
        below = self._symbols.of_name((rows.elements,), "below the image", turn).data
        flat = self._image.data.reshape(LANES, -1)
        image_rows = flat[:, turn * strips.rows * row : (turn + 1) * strips.rows * row]
        data = np.concatenate([image_rows, below[:, image_rows.shape[1] :]], 1)
        return Values(data.reshape(LANES, *(rows.shape or ())), False)


def _fill(tensor: Tensor, value: float) -> Values:
    kind: Any = DTYPES[tensor.type_name]
    return Values(np.full(tensor.shape or (), value, kind), True)
