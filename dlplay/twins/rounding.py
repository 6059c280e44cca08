"""Tells rounding from a real difference, where no known difference accounts for one."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dlplay.traces import first_visits
from dlplay.twins.measures import gap

if TYPE_CHECKING:
    from dlplay.twins.comparison import Parting

#: How much farther apart than a model from itself two models may be by rounding: the two
#: frameworks sum in different orders, in every layer, where the control changes each weight once.
MARGIN = 10.0


def verdict(twins: Any, question: Any, parting: "Parting") -> str:
    """Change each of PyTorch's weights by its last bit, and see how far the model moves by that.

    A model that parts from itself as far as from its twin shows rounding, not a difference.
    """
    from dlplay.twins.session import follow

    room, model = twins.wings["pytorch"], twins.models["pytorch"]
    with room.structure.kept(model):
        plain = follow(twins, "pytorch", question).output
        pairs = [
            (slot, _nudged(room.variables.values(slot)))
            for visit in first_visits(twins.visits["pytorch"])
            for slot in visit.part.slots.values()
        ]
        room.variables.assign(pairs)
        moved = follow(twins, "pytorch", question).output
    own = gap(moved, plain)
    word = "rounding" if parting.gap.relative <= MARGIN * own.relative else "a real difference"
    return (
        f"It looks like {word}: with the last bit of each weight changed, PyTorch's output parts"
        f" from itself by {own}."
    )


def _nudged(array: np.ndarray) -> np.ndarray:
    return np.nextafter(array, np.inf).astype(array.dtype)
