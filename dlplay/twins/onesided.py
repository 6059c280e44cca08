"""Explains a layer that only one of two models has, such as an activation left out."""

from collections.abc import Sequence

import numpy as np

from dlplay.traces import Visit
from dlplay.twins.alignment import Pair
from dlplay.twins.differences import Difference
from dlplay.twins.explanations import Explanation
from dlplay.twins.measures import Gap, as_like, gap, in_order


def explain_one_sided(pairs: Sequence[Pair], place: int, tolerance: float) -> Explanation | None:
    """What a layer without a counterpart changes; None where the models agree all the same.

    With the layer, the value behind it is compared with what the other model goes on with; without
    it, the value before it.
    """
    pair = pairs[place]
    wing, visit = ("keras", pair.keras) if pair.torch is None else ("pytorch", pair.torch)
    assert visit is not None
    other = _goes_on_with(pairs, place, "pytorch" if wing == "keras" else "keras")
    if other is None or visit.input is None or visit.output is None:
        return None
    before = _apart(visit, visit.output, visit.order, other, wing)
    after = _apart(visit, visit.input, visit.order, other, wing)
    if before.relative <= tolerance:
        return None
    title, missing = ("Keras", "PyTorch") if wing == "keras" else ("PyTorch", "Keras")
    difference = Difference(
        f"{visit.kind} that only {title} has ({visit.name!r})",
        (visit.kind,),
        "",
        _instruction(missing == "PyTorch", visit),
        _instruction(missing == "Keras", visit),
    )
    values = ("no such layer", visit.name) if wing == "keras" else (visit.name, "no such layer")
    code = difference.code(visit.name, visit.name, values)
    return Explanation(difference, *values, before, after, after.relative <= tolerance, code)


def _instruction(missing: bool, visit: Visit) -> str:
    name = visit.name.replace("{", "").replace("}", "")
    return f"add {visit.kind} where the other has {name!r}" if missing else f"take out {name!r}"


def _goes_on_with(pairs: Sequence[Pair], place: int, wing: str) -> tuple[np.ndarray, object] | None:
    """The input of the next layer that both have, on the other side, or what comes out at last."""
    for pair in pairs[place + 1 :]:
        if pair.torch is not None and pair.keras is not None:
            visit = pair.torch if wing == "pytorch" else pair.keras
            found = visit.input
            return None if found is None else (found, visit.input_order)
    for pair in reversed(pairs[:place]):
        last = pair.torch if wing == "pytorch" else pair.keras
        if last is not None and last.output is not None:
            return last.output, last.order
    return None


def _apart(
    visit: Visit, own: np.ndarray, order: object, other: tuple[np.ndarray, object], wing: str
) -> Gap:
    mine = in_order(own, order)  # type: ignore[arg-type]
    theirs = in_order(other[0], other[1])  # type: ignore[arg-type]
    torch, keras = (theirs, mine) if wing == "keras" else (mine, theirs)
    return gap(as_like(torch, keras), keras)
