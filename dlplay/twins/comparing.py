"""Compares what two models did in one pass each, pair by pair."""

from collections.abc import Iterable, Sequence

import numpy as np

from dlplay.traces import Visit
from dlplay.twins.alignment import Pair
from dlplay.twins.comparison import LayerDifference, Parting
from dlplay.twins.explanations import Explanation, explain_output
from dlplay.twins.graph import SILENT
from dlplay.twins.measures import NOWHERE, Gap, gap, inputs, output_gradients, outputs
from dlplay.twins.onesided import explain_one_sided

#: A gradient this small beside its layer's largest is rounding: measured at most 3e-7 (float32)
#: for a convolution's bias before batch normalization.
ROUNDING = 1e-5


def layer_difference(pair: Pair, updates: dict[int, dict[str, Gap]]) -> LayerDifference:
    """All that can be compared of one pair."""
    torch, keras = pair.torch, pair.keras
    if torch is None or keras is None:
        return LayerDifference(torch.name if torch else "", keras.name if keras else "", pair.kind)
    return LayerDifference(
        torch.name,
        keras.name,
        pair.kind,
        _gap(outputs(torch, keras)),
        _gap(output_gradients(torch, keras)),
        _arrays(torch.arrays, keras.arrays),
        _gradients(torch, keras),
        updates,
        pair.differing(),
    )


def _gap(both: tuple[np.ndarray, np.ndarray] | None) -> Gap | None:
    return None if both is None else gap(*both)


def _arrays(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> dict[str, Gap]:
    return {
        key: gap(one[key], two[key]) if key in one and key in two else NOWHERE
        for key in {**one, **two}
    }


def _gradients(torch: Visit, keras: Visit) -> dict[str, Gap]:
    scale = _largest(keras.gradients.values())
    both = [key for key in torch.gradients if key in keras.gradients]
    return {key: gap(torch.gradients[key], keras.gradients[key], scale) for key in both}


def _largest(arrays: Iterable[np.ndarray]) -> float:
    return max((float(np.abs(array).max(initial=0.0)) for array in arrays), default=0.0)


def rounding_only(visit: Visit) -> list[str]:
    """The arrays whose gradient is zero in theory: their updates are not compared."""
    scale = _largest(visit.gradients.values())
    return [key for key, array in visit.gradients.items() if _largest([array]) <= ROUNDING * scale]


def first_output(
    pairs: Sequence[Pair], rows: Sequence[LayerDifference], training: bool, tolerance: float
) -> Parting | None:
    """The first layer, in order of execution, whose output parts."""
    for place, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        if pair.torch is None or pair.keras is None:
            parting = _one_sided(pairs, place, row, tolerance)
            if parting is not None:
                return parting
        elif row.output is not None and row.output.relative > tolerance:
            before = _gap(inputs(pair.torch, pair.keras))
            if before is not None and before.relative > tolerance:
                return Parting("output", row, before, between=True)
            found = explain_output(pair, training, tolerance)
            return Parting("output", row, row.output, False, found)
    return None


def _one_sided(
    pairs: Sequence[Pair], place: int, row: LayerDifference, tolerance: float
) -> Parting | None:
    """A layer that only one model has parts them where it changes what goes through it."""
    visit = pairs[place].torch or pairs[place].keras
    assert visit is not None
    if visit.kind in SILENT or visit.input is None or visit.output is None:
        return None
    same = visit.input.shape == visit.output.shape
    change = gap(visit.output, visit.input) if same else NOWHERE
    if change.relative <= tolerance:
        return None
    explanation = explain_one_sided(pairs, place, tolerance)
    if explanation is None:
        return None
    return Parting("output", row, explanation.before, False, (explanation,))


def first_gradient(
    rows: Sequence[LayerDifference], tolerance: float
) -> tuple[LayerDifference, Gap] | None:
    """The first layer, from the loss backwards, whose gradients part."""
    for row in reversed(rows):
        found = row.largest("gradient")
        if found is not None and found.relative > tolerance:
            return row, found
    return None


def first_update(
    rows: Sequence[LayerDifference], tolerance: float
) -> tuple[LayerDifference, str, int, Gap] | None:
    """The first array, by step and then in order of execution, whose update parts."""
    steps = sorted({step for row in rows for step in row.updates})
    for step in steps:
        for row in rows:
            for key, found in row.updates.get(step, {}).items():
                if found.relative > tolerance:
                    return row, key, step, found
    return None


__all__ = [
    "Explanation",
    "first_gradient",
    "first_output",
    "first_update",
    "layer_difference",
    "rounding_only",
]
