"""Updates of two models, step by step, and what accounts for those that part."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dlplay.frameworks import WINGS
from dlplay.traces import first_visits
from dlplay.twins.alignment import Pair
from dlplay.twins.comparing import rounding_only
from dlplay.twins.differences import Difference, find
from dlplay.twins.explanations import Explanation
from dlplay.twins.measures import TOLERANCE, Gap, gap, inputs

if TYPE_CHECKING:
    from dlplay.twins.pair import Twins
    from dlplay.twins.session import Question

Weights = dict[str, dict[str, np.ndarray]]  # by wing, then by array


class Updates:
    """Makes the steps, and keeps how far each array of each pair is apart after each."""

    def __init__(self, twins: "Twins", pairs: list[Pair], question: "Question") -> None:
        self._twins, self.question = twins, question
        first = {id(v) for wing in WINGS for v in first_visits(_visits(pairs, wing))}
        self._pairs = [p for p in pairs if p.torch is not None and id(p.torch) in first and p.both]
        self._gaps: dict[int, dict[int, dict[str, Gap]]] = {}
        self.weights: dict[int, dict[int, Weights]] = {}
        self.left_out: tuple[str, ...] = ()
        precision = twins.wings["pytorch"].layers.home(twins.models["pytorch"])[0]
        self.tolerance = TOLERANCE[precision.name]

    def make(self) -> tuple[tuple[float, float], ...]:
        """Make all steps; the losses before each, PyTorch's and Keras's."""
        if not self.question.steps:
            return ()
        noise = {id(p): self._noise(p) for p in self._pairs}
        self.left_out = tuple(
            f"{p.torch.name} {key}" for p in self._pairs if p.torch for key in sorted(noise[id(p)])
        )
        runs = {wing: self._run(wing) for wing in WINGS}
        losses = []
        for step in range(1, self.question.steps + 1):
            losses.append((next(runs["pytorch"]), next(runs["keras"])))
            for pair in self._pairs:
                self._measure(pair, step, noise[id(pair)])
        return tuple(losses)

    def of(self, pair: Pair) -> dict[int, dict[str, Gap]]:
        """By step, the gaps of a pair's arrays."""
        return self._gaps.get(id(pair), {})

    def after(self, pair: Pair, wing: str, key: str, step: int) -> np.ndarray:
        """An array after a step; step 0 is before the first."""
        visit = pair.torch if wing == "pytorch" else pair.keras
        assert visit is not None
        return visit.arrays[key] if step == 0 else self.weights[step][id(pair)][wing][key]

    def again(self, wing: str, like: str, pair: Pair, key: str, step: int) -> np.ndarray:
        """An array after the same steps, with the optimizer's formula of ``like``."""
        room, model = self._twins.wings[wing], self._twins.models[wing]
        visit = pair.torch if wing == "pytorch" else pair.keras
        assert visit is not None
        with room.structure.kept(model):
            run = self._run(wing, like)
            for _ in range(step):
                next(run)
            return room.variables.values(visit.part.slots[key])

    def own(self) -> Iterator[tuple[Pair, Gap]]:
        """How far PyTorch's weights, as they are now, go from where they went before.

        The largest of each pair after all steps; the caller gives the weights back.
        """
        run = self._run("pytorch") if self.question.steps else iter(())
        found: dict[int, list[Gap]] = {}
        for step, _ in zip(range(1, self.question.steps + 1), run, strict=False):
            for pair in self._pairs:
                found.setdefault(id(pair), []).extend(self._against_before(pair, step))
        for pair in self._pairs:
            if found.get(id(pair)):
                yield pair, max(found[id(pair)], key=lambda gap: gap.relative)

    def _against_before(self, pair: Pair, step: int) -> Iterator[Gap]:
        assert pair.torch is not None
        before = self.weights[step][id(pair)]["pytorch"]
        for key in self._gaps[id(pair)][step]:
            now = self._twins.wings["pytorch"].variables.values(pair.torch.part.slots[key])
            scale = _scale(pair, self.weights[step][id(pair)]["keras"], key)
            yield gap(now, before[key], scale)

    def _run(self, wing: str, like: str | None = None) -> Iterator[float]:
        from dlplay.twins.session import objective

        room, model, question = self._twins.wings[wing], self._twins.models[wing], self.question
        rule = question.optimizer if like is None else question.optimizer.replace(like=like)
        given = room.structure.as_inputs(model, question.x)
        loss = objective(self._twins, wing, question)
        return room.trajectories.advance(model, given, loss, rule, question.learning_rate)

    def _noise(self, pair: Pair) -> set[str]:
        return {key for v in (pair.torch, pair.keras) if v is not None for key in rounding_only(v)}

    def _measure(self, pair: Pair, step: int, noise: set[str]) -> None:
        now = {
            wing: {key: self._twins.wings[wing].variables.values(slot) for key, slot in slots}
            for wing, slots in _slots(pair)
        }
        self.weights.setdefault(step, {})[id(pair)] = now
        shared = [k for k in now["pytorch"] if k in now["keras"] and k not in noise]
        self._gaps.setdefault(id(pair), {})[step] = {
            key: gap(now["pytorch"][key], now["keras"][key], _scale(pair, now["keras"], key))
            for key in shared
        }


def _visits(pairs: list[Pair], wing: str) -> list[Any]:
    sides = (pair.torch if wing == "pytorch" else pair.keras for pair in pairs)
    return [visit for visit in sides if visit is not None]


def _slots(pair: Pair) -> Iterator[tuple[str, Any]]:
    for wing, visit in (("pytorch", pair.torch), ("keras", pair.keras)):
        assert visit is not None
        yield wing, visit.part.slots.items()


def _scale(pair: Pair, now: dict[str, np.ndarray], key: str) -> float:
    """The largest update of an array, and what rounding of its weights makes of it.

    A weight moves by steps of its own last bit, so differences as small as that cannot be told:
    the weights' own size counts as epsilon / tolerance of an update.
    """
    assert pair.keras is not None
    moved = float(np.abs(now[key] - pair.keras.arrays[key]).max(initial=0.0))
    size = float(np.abs(now[key]).max(initial=0.0))
    dtype = now[key].dtype
    return moved + size * 4 * float(np.finfo(dtype).eps) / TOLERANCE[str(dtype)]


def explain_gradient(pair: Pair, tolerance: float) -> tuple[Explanation, ...]:
    """A penalty on the weights, which Keras adds to the loss, and PyTorch's padding_idx."""
    torch, keras = pair.torch, pair.keras
    if torch is None or keras is None:
        return ()
    found = []
    for key, ours in torch.gradients.items():
        theirs, weight = keras.gradients.get(key), keras.arrays[key]
        if theirs is None or not weight.any():
            continue
        factor = float(np.vdot(theirs - ours, weight) / np.vdot(weight, weight))
        before, after = gap(ours, theirs), gap(ours + factor * weight, theirs)
        if before.relative > tolerance >= after.relative:
            found.append(_penalty(torch.name, keras.name, factor, before, after))
    return tuple(found)


def _penalty(torch: str, keras: str, factor: float, before: Gap, after: Gap) -> Explanation:
    entry = Difference(
        "An L2 penalty that only Keras's loss has",
        (),
        "",
        f"weight_decay={factor:.6g} for this layer in torch.optim.SGD or Adam: twice Keras's L2",
        "take the kernel_regularizer out",
        sources=("https://keras.io/api/layers/regularizers/",),
    )
    values = ("none", f"L2({factor / 2:.6g})")
    code = entry.code(torch, keras, values)
    return Explanation(entry, *values, before, after, True, code)


def explain_update(
    updates: Updates, pair: Pair, key: str, step: int, tolerance: float
) -> tuple[Explanation, ...]:
    """Batch normalization's statistics, two biases for one, or the optimizer's own formula."""
    torch, keras = pair.torch, pair.keras
    assert torch is not None
    assert keras is not None
    scale = _scale(pair, updates.weights[step][id(pair)]["keras"], key)
    ours, theirs = (updates.after(pair, wing, key, step) for wing in WINGS)
    before = gap(ours, theirs, scale)
    if key.startswith("moving"):
        return _statistics(updates, pair, key, step, tolerance, before, scale)
    if key == "bias" and torch.options.get("biases", 1) == 2 and step == 1:
        start = updates.after(pair, "pytorch", key, 0)
        after = gap(start + (ours - start) / 2, theirs, scale)
        entry = find(torch.kind, "biases")
        code = entry.code(torch.name, keras.name, (2, 1))
        return (Explanation(entry, 2, 1, before, after, after.relative <= tolerance, code),)
    return _formula(updates, pair, key, step, tolerance, before, scale)


def _formula(
    updates: Updates, pair: Pair, key: str, step: int, tolerance: float, before: Gap, scale: float
) -> tuple[Explanation, ...]:
    name = updates.question.optimizer.name
    entry = Difference(
        f"The formula of {name}, in which the frameworks' optimizers differ",
        (),
        "",
        'optimizers.make(model, Optimizer(..., like="keras"), ...)',
        'optimizers.make(model, Optimizer(..., like="pytorch"), ...)',
        sources=(
            "https://docs.pytorch.org/docs/stable/optim.html",
            "https://keras.io/api/optimizers/",
        ),
    )
    made = updates.again("keras", "pytorch", pair, key, step)
    after = gap(updates.after(pair, "pytorch", key, step), made, scale)
    if after.relative >= 0.5 * before.relative:
        return ()
    code = entry.code("", "", ("", ""))
    values = ("its own", "its own")
    return (Explanation(entry, *values, before, after, after.relative <= tolerance, code),)


def _statistics(
    updates: Updates,
    pair: Pair,
    key: str,
    step: int,
    tolerance: float,
    before: Gap,
    scale: float,
) -> tuple[Explanation, ...]:
    """Redo Keras's first statistics with PyTorch's momentum, then with its batch variance too."""
    both = None if pair.torch is None or pair.keras is None else inputs(pair.torch, pair.keras)
    if both is None or step != 1 or pair.torch is None or pair.keras is None:
        return ()
    x = both[1].astype(np.float64).reshape(-1, both[1].shape[-1])
    ours = updates.after(pair, "pytorch", key, 1)
    start = updates.after(pair, "keras", key, 0)
    momenta = pair.torch.options["momentum"], pair.keras.options["momentum"]
    found = []
    for option, kept, ddof in (("momentum", momenta[0], 0), ("moving_variance_of", momenta[0], 1)):
        if kept is None or (option == "moving_variance_of" and key == "moving_mean"):
            continue
        fresh = x.mean(0) if key == "moving_mean" else x.var(0, ddof=ddof)
        after = gap(ours, kept * start + (1 - kept) * fresh, scale)
        values = pair.torch.options[option], pair.keras.options[option]
        entry = find("batch_norm", option)
        code = entry.code(pair.torch.name, pair.keras.name, values)
        if values[0] != values[1]:
            good = after.relative <= tolerance
            found.append(Explanation(entry, *values, before, after, good, code))
        if after.relative <= tolerance:
            break
    return tuple(found)
