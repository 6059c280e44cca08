"""One model's visits as a graph: what a layer with weights depends on, and how deep it lies."""

from collections.abc import Mapping
from dataclasses import replace

from dlplay.traces import Visit, pads_read

#: Kinds by which two models are aligned; all others are found between these.
ANCHORS = frozenset(
    {"dense", "embedding", "batch_norm", "layer_norm", "group_norm", "rms_norm", "prelu"}
    | {"simple_rnn", "lstm", "gru", "attention"}
    | {f"conv{rank}d{end}" for rank in (1, 2, 3) for end in ("", "_transpose")}
)
#: Kinds that only move data, or that a framework may do without saying so.
SILENT = frozenset(
    {"flatten", "reshape", "permute", "identity", "add", "multiply", "subtract", "concatenate"}
    | {"mean"}
)
#: Kinds that can pad their own input.
_PADDED = ("conv1d", "conv2d", "conv3d", "max_pool1d", "max_pool2d", "max_pool3d")
_MAIN = ("kernel", "embeddings", "query_kernel", "gamma", "moving_mean", "alpha")


class Graph:
    """One model's visits with their places: how deep each lies, and which anchor is behind it."""

    def __init__(self, visits: list[Visit]) -> None:
        self.visits = _folded(visits)
        self.depth: list[int] = []
        for visit in self.visits:
            below = max((self.depth[source] for source in visit.sources), default=0)
            self.depth.append(below + (visit.kind in ANCHORS))
        self.anchors = [i for i, visit in enumerate(self.visits) if visit.kind in ANCHORS]
        self.by_depth = sorted(
            self.anchors, key=lambda i: (self.depth[i], repr(signature(self.visits[i])), i)
        )

    def behind(self, ranks: Mapping[int, int]) -> list[int]:
        """For each visit, the rank of the deepest anchor that it depends on, or -1."""
        found: list[int] = []
        for index, visit in enumerate(self.visits):
            own = ranks.get(index)
            above = max((found[source] for source in visit.sources), default=-1)
            found.append(above if own is None else own)
        return found


def signature(visit: Visit) -> tuple[str, tuple[int, ...] | None]:
    """What two corresponding layers share: the kind, and the shape of the main array."""
    shape = next((visit.arrays[key].shape for key in _MAIN if key in visit.arrays), None)
    return visit.kind, shape if visit.kind != "prelu" else None


def _folded(visits: list[Visit]) -> list[Visit]:
    """Take constant padding into the convolution or pooling behind it, as PyTorch writes it."""
    users: dict[int, list[int]] = {}
    for index, visit in enumerate(visits):
        for source in visit.sources:
            users.setdefault(source, []).append(index)
    folded, gone = list(visits), set()
    for index, visit in enumerate(visits):
        behind = users.get(index, [])
        if len(behind) == 1 and _can_fold(visit, visits[behind[0]]):
            folded[behind[0]] = _with_padding(folded[behind[0]], visit)
            gone.add(index)
    place = {index: at for at, index in enumerate(i for i in range(len(visits)) if i not in gone)}
    return [
        replace(folded[index], sources=tuple(place[source] for source in folded[index].sources))
        for index in place
    ]


def _can_fold(pad: Visit, user: Visit) -> bool:
    if pad.kind != "pad" or pad.options["mode"] != "constant" or user.kind not in _PADDED:
        return False
    fits = len(pad.options["padding"]) == len(user.options["padding"])
    return fits and ("pool" in user.kind or pad.options["value"] == 0)


def _with_padding(user: Visit, pad: Visit) -> Visit:
    """The visit that takes the padding's own input, and pads as both together did."""
    padding, own = pad.options["padding"], user.options["padding"]
    before = tuple(one[0] + two[0] for one, two in zip(padding, own, strict=True))
    sizes = zip(user.options["_sizes"], padding, strict=True)
    unpadded = tuple(size - sum(pair) for size, pair in sizes)
    options = user.options | {
        "padding": pads_read(before, unpadded, user.options["_reach"]),
        "_padding": f"{pad.name}, then {user.options['_padding']}",
    }
    if "pool" in user.kind and any(map(any, padding)):
        options["pad_value"] = pad.options["value"]
    part = replace(user.part, options=options)
    return replace(user, part=part, input=pad.input, sources=pad.sources)
