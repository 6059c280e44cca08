"""One comparison of a pair of twins, from the passes to the explanation."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dlplay.errors import ModelError
from dlplay.frameworks import WINGS
from dlplay.settings import Optimizer
from dlplay.traces import Trace
from dlplay.twins import comparing
from dlplay.twins.alignment import Pair
from dlplay.twins.comparison import Comparison, LayerDifference, Parting
from dlplay.twins.measures import Gap, as_like, gap, in_order
from dlplay.twins.rounding import Tolerances, control
from dlplay.twins.steps import Updates, explain_gradient, explain_update

if TYPE_CHECKING:
    from dlplay.twins.pair import Twins


@dataclass(frozen=True)
class Question:
    """What is asked of a comparison; see ``Twins.compare``."""

    x: tuple[np.ndarray, ...]
    y: Any
    loss: Any
    optimizer: Optimizer
    steps: int
    learning_rate: float
    training: bool


def compare(twins: "Twins", question: Question) -> Comparison:
    """Run both models, and compare what they did; both come back as they were found."""
    if question.steps and question.y is None:
        raise ModelError("Comparing updates needs y, the labels or targets of x.")
    with ExitStack() as stack:
        for wing in WINGS:
            room, model = twins.wings[wing], twins.models[wing]
            stack.enter_context(room.structure.kept(model))
        traces = {wing: follow(twins, wing, question) for wing in WINGS}
        pairs = twins.align({wing: traces[wing].visits for wing in WINGS})
        updates = Updates(twins, pairs, question)
        losses = updates.make()
    rows = [comparing.layer_difference(p, updates.of(p)) for p in pairs]
    dtype = twins.wings["pytorch"].layers.home(twins.models["pytorch"])[0].name
    one, two = traces["pytorch"], traces["keras"]
    first, rounding = _first(twins, question, pairs, rows, updates)
    return Comparison(
        tuple(rows),
        _output(one, two),
        losses or (() if one.loss is None or two.loss is None else ((one.loss, two.loss),)),
        dtype,
        first,
        updates.left_out,
        rounding,
    )


def _output(one: Trace, two: Trace) -> Gap:
    ours, theirs = in_order(one.output, one.order), in_order(two.output, two.order)
    return gap(as_like(ours, theirs), theirs)


def follow(twins: "Twins", wing: str, question: Question) -> Trace:
    """One pass of one wing's model."""
    room, model = twins.wings[wing], twins.models[wing]
    inputs = room.structure.as_inputs(model, question.x)
    return room.tracing.follow(
        model,
        inputs,
        keep=True,
        training=question.training,
        objective=None if question.y is None else objective(twins, wing, question),
    )


def objective(twins: "Twins", wing: str, question: Question) -> Any:
    """The loss of one wing's output, as a function of it."""
    room = twins.wings[wing]
    y = np.asarray(question.y)
    precision, device = room.layers.home(twins.models[wing])
    target = room.arrays.to_tensor(y, precision, device)
    given = question.loss
    if isinstance(given, dict):
        function = given[wing]
    else:
        name = given or ("mean_squared_error" if y.dtype.kind == "f" else "cross_entropy")
        function = getattr(room.losses, str(name), None)
        if function is None:
            raise ModelError(
                f"loss is {name!r}, but must be a function in both wings' losses, such as"
                ' "cross_entropy", or {"pytorch": f, "keras": g}.'
            )
    return lambda output: function(output, target)


def _first(
    twins: "Twins",
    question: Question,
    pairs: list[Pair],
    rows: list[LayerDifference],
    updates: Updates,
) -> tuple[Parting | None, str]:
    """Where the models part, and what rounding has to do with it.

    Only where no known difference accounts for a parting is it asked whether rounding does.
    """
    plain = Tolerances(updates.tolerance)
    parting = _parting(question, pairs, rows, updates, plain)
    if parting is None or any(explanation.verified for explanation in parting.explanations):
        return parting, ""
    found = control(twins, question, pairs, updates)
    again = _parting(question, pairs, rows, updates, found)
    own = found.own.get((rows.index((again or parting).layer), (again or parting).stage))
    words = f"with the last bit of each weight changed, PyTorch parts from itself by {own} there."
    if again is None:
        size, place = parting.gap, parting.layer.place
        return None, f"Rounding alone: {place} differ by {size} at most; {words}"
    known = any(explanation.verified for explanation in again.explanations)
    return replace(again, verdict="" if known else f"It is not rounding: {words}"), ""


def _parting(
    question: Question,
    pairs: list[Pair],
    rows: list[LayerDifference],
    updates: Updates,
    allowed: Tolerances,
) -> Parting | None:
    parting = comparing.first_output(pairs, rows, question.training, allowed)
    if parting is None and (found := comparing.first_gradient(rows, allowed)):
        row, size = found
        reasons = explain_gradient(pairs[rows.index(row)], allowed.base)
        parting = Parting("gradient", row, size, False, reasons)
    if parting is None and (update := comparing.first_update(rows, allowed)):
        row, key, step, size = update
        reasons = explain_update(updates, pairs[rows.index(row)], key, step, allowed.base)
        parting = Parting("update", row, size, False, reasons)
    return parting
