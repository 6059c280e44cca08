"""Which layer of one model corresponds to which of the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches

import numpy as np

from dlplay.errors import ModelError
from dlplay.frameworks import title
from dlplay.traces import Visit
from dlplay.twins.graph import ANCHORS, Graph, signature


@dataclass(frozen=True)
class Pair:
    """Two visits that correspond; None where one framework has nothing there."""

    torch: Visit | None
    keras: Visit | None

    @property
    def kind(self) -> str:
        return (self.torch or self.keras).kind  # type: ignore[union-attr]

    @property
    def both(self) -> bool:
        return self.torch is not None and self.keras is not None

    def differing(self) -> dict[str, tuple[object, object]]:
        """Options whose values differ: by name, PyTorch's value and Keras's."""
        if self.torch is None or self.keras is None:
            return {}
        one, two = self.torch.options, self.keras.options
        return {
            key: (one[key], two[key])
            for key in one
            if key[0] != "_" and key in two and not _equal(one[key], two[key])
        }


def _equal(one: object, two: object) -> bool:
    """Options that went through float32 on one side are still the same."""
    if isinstance(one, float) and isinstance(two, (int, float)):
        return bool(one == two or np.isclose(one, two, rtol=1e-6, atol=0.0))
    return one == two


def align(
    torch: list[Visit], keras: list[Visit], match: Mapping[str, str] | None = None
) -> list[Pair]:
    """Pair the visits of two models, in PyTorch's order of execution.

    Layers with weights are paired by their depth in the graph, kind and shape, or, where these do
    not tell, by order of execution; the rest by kind, behind the same layer with weights.

    Parameters
    ----------
    match : mapping of str to str, optional
        PyTorch layers' names to the Keras layers' that they are.

    Raises
    ------
    ModelError
        Where layers with weights are left over: it names the two candidates.
    """
    one, two = Graph(torch), Graph(keras)
    pairs = _named(one, two, match or {})
    named = {i for i, _ in pairs}, {j for _, j in pairs}
    left = [i for i in one.by_depth if i not in named[0]]
    right = [j for j in two.by_depth if j not in named[1]]
    if not _same(one, left, two, right):
        in_order = sorted(left), sorted(right)
        if not _same(one, in_order[0], two, in_order[1]):
            raise ModelError(_trouble(one, left, two, right))
        left, right = in_order
    pairs += list(zip(left, right, strict=True))
    return _between(one, two, pairs)


def _same(one: Graph, left: list[int], two: Graph, right: list[int]) -> bool:
    signatures = [signature(one.visits[i]) for i in left], [signature(two.visits[i]) for i in right]
    return len(left) == len(right) and all(map(_fit, *signatures))


def _fit(one: tuple[str, object], two: tuple[str, object]) -> bool:
    return one[0] == two[0] and (one[1] == two[1] or None in (one[1], two[1]))


def _named(one: Graph, two: Graph, match: Mapping[str, str]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for torch, keras in match.items():
        first, second = _find("pytorch", one, torch), _find("keras", two, keras)
        if len(first) != len(second):
            raise ModelError(
                f"match pairs {torch!r} with {keras!r}, but the first is called {len(first)} times"
                f" and the second {len(second)} times."
            )
        for i, j in zip(first, second, strict=True):
            if not _fit(signature(one.visits[i]), signature(two.visits[j])):
                raise ModelError(
                    f"match pairs layers that do not fit: {_words('pytorch', one.visits[i])} and"
                    f" {_words('keras', two.visits[j])}."
                )
            pairs.append((i, j))
    return pairs


def _find(wing: str, graph: Graph, name: str) -> list[int]:
    found = [i for i in graph.anchors if name in _names(graph.visits[i])]
    if not found:
        known = sorted({n for i in graph.anchors for n in _names(graph.visits[i])})
        close = get_close_matches(name, known, n=3, cutoff=0.0)
        raise ModelError(
            f"match names {title(wing)} layer {name!r}, which has no weights here or is not called;"
            f" the nearest names are {', '.join(map(repr, close))}."
        )
    return found


def _names(visit: Visit) -> set[str]:
    return {visit.name, visit.name.rpartition("/")[2]}


def _words(wing: str, visit: Visit) -> str:
    shape = signature(visit)[1]
    sizes = "" if shape is None else f", {' x '.join(map(str, shape))}"
    return f"{title(wing)} layer {visit.name!r} ({visit.kind}{sizes})"


def _trouble(one: Graph, left: list[int], two: Graph, right: list[int]) -> str:
    """The first place where the layers do not fit, with the two candidates."""
    ours, theirs = [one.visits[i] for i in left], [two.visits[i] for i in right]
    keys = [signature(v) for v in ours], [signature(v) for v in theirs]
    steps = SequenceMatcher(None, *keys, autojunk=False).get_opcodes()
    _, a, a_end, b, b_end = next(step for step in steps if step[0] != "equal")
    count = f"PyTorch has {len(one.anchors)} layers with weights, Keras {len(two.anchors)}"
    hint = 'say which layers correspond with match={"torch.name": "keras.name"}'
    if a < a_end and b < b_end:
        return (
            f"These are no twins: {_words('pytorch', ours[a])} stands against"
            f" {_words('keras', theirs[b])}; {count}: make them equal, or {hint}."
        )
    wing, visit = ("pytorch", ours[a]) if a < a_end else ("keras", theirs[b])
    other, rest = ("keras", theirs[b:]) if a < a_end else ("pytorch", ours[a:])
    against = _words(other, rest[0]) if rest else f"the end of the {title(other)} model"
    return (
        f"These are no twins: {_words(wing, visit)} has no counterpart, where {against} stands;"
        f" {count}: add or remove the layer, or {hint}."
    )


def _between(one: Graph, two: Graph, pairs: list[tuple[int, int]]) -> list[Pair]:
    """Add what lies between the layers with weights, in order of execution."""
    ranked = sorted(pairs)
    torch_behind = one.behind({i: rank for rank, (i, _) in enumerate(ranked)})
    keras_behind = two.behind({j: rank for rank, (_, j) in enumerate(ranked)})
    waiting: dict[tuple[int, str], list[int]] = {}
    for j, visit in enumerate(two.visits):
        if visit.kind not in ANCHORS:
            waiting.setdefault((keras_behind[j], visit.kind), []).append(j)
    partner = dict(pairs)
    for i, visit in enumerate(one.visits):
        queue = waiting.get((torch_behind[i], visit.kind), [])
        if visit.kind not in ANCHORS and queue:
            partner[i] = queue.pop(0)
    rows = [(i, partner.get(i)) for i in range(len(one.visits))]
    for j in sorted(j for queue in waiting.values() for j in queue):
        after = [at for at, (_, k) in enumerate(rows) if k is not None and k < j]
        rows.insert(max(after, default=-1) + 1, (None, j))  # type: ignore[arg-type]
    return [
        Pair(None if i is None else one.visits[i], None if j is None else two.visits[j])
        for i, j in rows
    ]
