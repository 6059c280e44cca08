"""Compares what two models did in one pass each, pair by pair."""

from collections.abc import Sequence

import numpy as np

from dlplay.traces import Visit
from dlplay.twins.alignment import Pair
from dlplay.twins.comparison import LayerDifference, Parting
from dlplay.twins.explanations import explain_output
from dlplay.twins.graph import SILENT
from dlplay.twins.measures import (
    NOWHERE,
    Gap,
    gap,
    gradient_scale,
    inputs,
    output_gradients,
    outputs,
)
from dlplay.twins.onesided import explain_one_sided
from dlplay.twins.rounding import Tolerances

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
    scale = gradient_scale(keras)
    both = [key for key in torch.gradients if key in keras.gradients]
    return {key: gap(torch.gradients[key], keras.gradients[key], scale) for key in both}


def rounding_only(visit: Visit) -> list[str]:
    """The arrays whose gradient is zero in theory: their updates are not compared."""
    least = ROUNDING * gradient_scale(visit)
    return [key for key, g in visit.gradients.items() if np.abs(g).max(initial=0.0) <= least]


def first_output(
    pairs: Sequence[Pair], rows: Sequence[LayerDifference], training: bool, allowed: Tolerances
) -> Parting | None:
    """The first layer, in order of execution, whose output parts."""
    for place, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        if pair.torch is None or pair.keras is None:
            parting = _one_sided(pairs, place, row, allowed.base)
            if parting is not None:
                return parting
        elif row.output is not None and allowed.exceeded(place, "output", row.output):
            before = _gap(inputs(pair.torch, pair.keras))
            if before is not None and allowed.exceeded(place, "output", before):
                return Parting("output", row, before, between=True)
            found = explain_output(pair, training, allowed.base)
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
    rows: Sequence[LayerDifference], allowed: Tolerances
) -> tuple[LayerDifference, Gap] | None:
    """The first layer, from the loss backwards, whose gradients part.

    A gradient by an output that no weight's gradient shows is passed over: where a maximum is
    reached twice, the frameworks may send it either way.
    """
    places = range(len(rows))
    by_weight = (gap for row in rows for gap in row.weight_gradients.values())
    if not any(gap.relative > allowed.base for gap in by_weight):
        return None
    for place in reversed(places):
        found = rows[place].largest("gradient")
        if found is not None and allowed.exceeded(place, "gradient", found):
            return rows[place], found
    return None


def first_update(
    rows: Sequence[LayerDifference], allowed: Tolerances
) -> tuple[LayerDifference, str, int, Gap] | None:
    """The first array, by step and then in order of execution, whose update parts."""
    steps = sorted({step for row in rows for step in row.updates})
    for step in steps:
        for place, row in enumerate(rows):
            for key, found in row.updates.get(step, {}).items():
                if allowed.exceeded(place, "update", found):
                    return row, key, step, found
    return None
