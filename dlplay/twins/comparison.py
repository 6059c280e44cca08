"""How far two models are from each other, array by array."""

from dataclasses import dataclass
from html import escape

import numpy as np


@dataclass(frozen=True)
class LayerDifference:
    """The largest difference of one pair of arrays.

    Attributes
    ----------
    torch, keras : str
        What is compared, in each framework's words.
    absolute : float
        max |a - b|; infinite where the shapes differ or only one side is a number.
    relative : float
        absolute / max |b|, with b the Keras side; 0 where both are all zeros.
    """

    torch: str
    keras: str
    absolute: float
    relative: float


def compare_arrays(torch: str, keras: str, a: np.ndarray, b: np.ndarray) -> LayerDifference:
    """Compare two arrays in float64."""
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return LayerDifference(torch, keras, float("inf"), float("inf"))
    a, b = np.nan_to_num(a.astype(np.float64)), np.nan_to_num(b.astype(np.float64))
    absolute = float(np.max(np.abs(a - b), initial=0.0))
    size = float(np.max(np.abs(b), initial=0.0))
    relative = absolute / size if size else absolute and float("inf")
    return LayerDifference(torch, keras, absolute, relative)


@dataclass(frozen=True)
class Comparison:
    """All differences of a pair of twins, weights first, outputs last."""

    differences: tuple[LayerDifference, ...]

    @property
    def largest(self) -> LayerDifference:
        """The pair with the largest relative difference."""
        return max(self.differences, key=lambda difference: difference.relative)

    def to_dicts(self) -> list[dict[str, str | float]]:
        """One dict for each pair, for machines."""
        return [vars(difference) for difference in self.differences]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (d.torch, d.keras, f"{d.absolute:.1e}", f"{d.relative:.1e}") for d in self.differences
        ]

    def __str__(self) -> str:
        rows = [("PyTorch", "Keras", "absolute", "relative"), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        head = "<tr><th>PyTorch</th><th>Keras</th><th>absolute</th><th>relative</th></tr>"
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        return f"<table>{head}{body}</table>"
