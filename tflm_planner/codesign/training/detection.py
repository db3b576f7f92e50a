"""Judges what is found on a grid of cells.

    labels (images, rows, columns)   class 0: nothing
    scores (..., classes)            found: the cells whose best class is another

Most cells are empty, so that a network which finds nothing is right in most of them (`accuracy`).
F1 counts only what is there or is said to be there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.codesign.networks.weights import Array


@dataclass(frozen=True)
class Detections:
    """right: things found with their class in their cell. said: all that were said to be there.
    there: all that are there."""

    right: int
    said: int
    there: int

    @property
    def precision(self) -> float:
        """The share of what was said that is right; 0 if nothing was said."""
        return self.right / self.said if self.said else 0.0

    @property
    def recall(self) -> float:
        """The share of what is there that was found; 0 if nothing is there."""
        return self.right / self.there if self.there else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if nothing is there and nothing was said."""
        both = self.said + self.there
        return 2 * self.right / both if both else 0.0


def found(scores: Array, labels: Array) -> Detections:
    """Count what is found with the right class in the right cell. A thing in the next cell is
    wrong twice: it is missed here, and said to be there. scores: (number, rows, columns, classes).
    labels: (number, rows, columns). Raises ValueError if the shapes do not match."""
    if scores.shape[:-1] != labels.shape:
        raise ValueError(f"scores {scores.shape} are not of labels {labels.shape}")
    best = scores.argmax(axis=-1)
    is_right = (best == labels) & (labels != 0)
    return Detections(int(is_right.sum()), int((best != 0).sum()), int((labels != 0).sum()))
