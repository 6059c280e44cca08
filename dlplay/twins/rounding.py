"""Tells rounding from a real difference, where no known difference accounts for one."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dlplay.traces import Visit, first_visits
from dlplay.twins.alignment import Pair
from dlplay.twins.measures import Gap, gap, gradient_scale

if TYPE_CHECKING:
    from dlplay.twins.pair import Twins
    from dlplay.twins.session import Question
    from dlplay.twins.steps import Updates

#: How much farther apart than a model from itself two models may be by rounding: the control
#: changes each weight once, where the frameworks sum in different orders in every layer.
#: Measured between equal models: 0.1 to 3 times (resnet18, mobilenet_v2 in training mode).
MARGIN = 10.0

Own = dict[tuple[int, str], Gap]


@dataclass(frozen=True)
class Tolerances:
    """How far each pair may be apart at each stage: by its type, and by what rounding does there.

    ``own`` is how far PyTorch's model parts from itself when the last bit of each weight changes,
    by the pair's place and the stage.
    """

    base: float
    own: Own = field(default_factory=dict)

    def exceeded(self, place: int, stage: str, found: Gap | None) -> bool:
        """Whether a difference is beyond them."""
        if found is None:
            return False
        own = self.own.get((place, stage))
        return found.relative > max(self.base, MARGIN * own.relative if own else 0.0)


def control(
    twins: "Twins", question: "Question", pairs: list[Pair], updates: "Updates"
) -> Tolerances:
    """Change each of PyTorch's weights by its last bit, and see how far the model moves by that."""
    from dlplay.twins.session import follow

    room, model = twins.wings["pytorch"], twins.models["pytorch"]
    own: Own = {}
    places = {id(pair): place for place, pair in enumerate(pairs)}
    with room.structure.kept(model):
        slots = [s for v in first_visits(twins.visits["pytorch"]) for s in v.part.slots.values()]
        room.variables.assign((slot, _nudged(room.variables.values(slot))) for slot in slots)
        moved = _by_call(follow(twins, "pytorch", question).visits)
        plain = {id(visit): key for key, visit in _by_call([p.torch for p in pairs]).items()}
        for place, pair in enumerate(pairs):
            key = plain.get(id(pair.torch))
            if pair.torch is not None and key in moved:
                own |= _apart(place, pair.torch, moved[key])
        own |= {(places[id(p)], "update"): g for p, g in updates.own()}
    return Tolerances(updates.tolerance, own)


def _nudged(array: np.ndarray) -> np.ndarray:
    return np.nextafter(array, np.inf).astype(array.dtype)


def _by_call(visits: list[Visit | None] | list[Visit]) -> dict[tuple[str, int], Visit]:
    """Visits by their name, and which of a shared layer's calls they are."""
    count: Counter[str] = Counter()
    found = {}
    for visit in visits:
        if visit is not None:
            count[visit.name] += 1
            found[visit.name, count[visit.name]] = visit
    return found


def _apart(place: int, plain: Visit, moved: Visit) -> Own:
    own: Own = {}
    if plain.output is not None and moved.output is not None:
        own[place, "output"] = gap(moved.output, plain.output)
    gaps = [
        gap(moved.gradients[key], plain.gradients[key], gradient_scale(plain))
        for key in plain.gradients
        if key in moved.gradients
    ]
    if plain.gradient is not None and moved.gradient is not None:
        gaps.append(gap(moved.gradient, plain.gradient))
    if gaps:
        own[place, "gradient"] = max(gaps, key=lambda found: found.relative)
    return own
