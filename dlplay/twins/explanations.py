"""Explains why a layer's outputs part, and verifies it: without the difference, they must agree."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlplay.traces import Visit
from dlplay.twins.alignment import Pair
from dlplay.twins.differences import Difference, find
from dlplay.twins.measures import Gap, as_like, gap, in_order, outputs
from dlplay.twins.reference import compute

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Explanation:
    """A known difference, both its values, and how far the layers are apart with and without it.

    Attributes
    ----------
    difference : Difference
        The catalogue's entry.
    torch, keras : object
        Both values.
    before, after : Gap
        As the layers are, and with the difference removed.
    verified : bool
        Whether nothing is left: ``after`` is within the tolerance.
    code : mapping of str to str
        What to change, in either framework: one of the two is enough.
    """

    difference: Difference
    torch: Any
    keras: Any
    before: Gap
    after: Gap
    verified: bool
    code: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        word = "Verified" if self.verified else "Not all of it"
        return (
            f"{self.difference.name}: PyTorch {self.torch}, Keras {self.keras}. {word}: without"
            f" it they differ by {self.after} instead of {self.before}."
            + "".join(f"\n  {title} {text}" for title, text in self._code())
        )

    def _code(self) -> Iterator[tuple[str, str]]:
        if self.code:
            yield "in PyTorch:", self.code["pytorch"]
            yield "or in Keras:", self.code["keras"]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "name": self.difference.name,
            "torch": str(self.torch),
            "keras": str(self.keras),
            "before": vars(self.before),
            "after": vars(self.after),
            "verified": self.verified,
            "code": dict(self.code),
            "sources": list(self.difference.sources),
        }


def explain_output(pair: Pair, training: bool, tolerance: float) -> tuple[Explanation, ...]:
    """What accounts for the difference of two layers' outputs on equal inputs.

    Each option that differs, then the way the weights were copied, then the weights themselves:
    the first that leaves nothing. Where none does alone, the options together.
    """
    found = [_explain(pair, change, training, tolerance) for change in _changes(pair, tolerance)]
    explained = [explanation for explanation in found if explanation is not None]
    verified = [explanation for explanation in explained if explanation.verified]
    if verified:
        return tuple(verified[:1])
    nearer = [e for e in explained if e.after.relative < 0.5 * e.before.relative]
    return tuple(nearer)


@dataclass(frozen=True)
class _Change:
    """Keras's layer made like PyTorch's in one respect."""

    difference: Difference
    torch: Any
    keras: Any
    options: dict[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)


def _changes(pair: Pair, tolerance: float) -> Iterator[_Change]:
    torch, keras = pair.torch, pair.keras
    assert torch is not None
    assert keras is not None
    differing = pair.differing()
    for option, (one, two) in differing.items():
        yield _Change(find(torch.kind, option), one, two, {option: one})
    if len(differing) > 1:
        values = {option: one for option, (one, _) in differing.items()}
        every = {option: two for option, (_, two) in differing.items()}
        together = Difference(
            f"{torch.kind}'s options together", (), "", "see each option", "see each option"
        )
        yield _Change(together, values, every, values)
    if _weights_differ(torch, keras, tolerance):
        yield from _copies(torch, keras, tolerance)
        yield _Change(WEIGHTS, "its own", "its own", differing_values(pair), torch.arrays)


def differing_values(pair: Pair) -> dict[str, Any]:
    """PyTorch's values of the options that differ."""
    return {option: one for option, (one, _) in pair.differing().items()}


def _weights_differ(torch: Visit, keras: Visit, tolerance: float) -> bool:
    return torch.arrays.keys() != keras.arrays.keys() or any(
        gap(array, keras.arrays[key]).relative > tolerance for key, array in torch.arrays.items()
    )


def _explain(pair: Pair, change: _Change, training: bool, tolerance: float) -> Explanation | None:
    torch, keras = pair.torch, pair.keras
    assert torch is not None
    assert keras is not None
    both = outputs(torch, keras)
    if both is None or keras.input is None:
        return None
    x = in_order(keras.input, keras.input_order)
    arrays = keras.arrays | change.arrays
    made = compute(keras.kind, keras.options | change.options, arrays, x, training)
    if made is None:
        return None
    one, two = both
    after = gap(as_like(one, made), made)
    values = (change.torch, change.keras)
    return Explanation(
        change.difference,
        *values,
        before=gap(one, two),
        after=after,
        verified=after.relative <= tolerance,
        code=change.difference.code(torch.name, keras.name, values),
    )


#: The weights are not the same, and not in a way that has a name.
WEIGHTS = Difference(
    "The weights, which are not the same",
    (),
    "weights",
    'twins.copy_weights(source="keras")',
    'twins.copy_weights(source="pytorch")',
)


def _copy(name: str) -> Difference:
    return Difference(
        name,
        (),
        "weights",
        'twins.copy_weights(source="keras")',
        'twins.copy_weights(source="pytorch")',
        sources=("https://keras.io/api/layers/", "https://docs.pytorch.org/docs/stable/nn.html"),
    )


def _copies(torch: Visit, keras: Visit, tolerance: float) -> Iterator[_Change]:
    """Known mistakes of copying: one that turns PyTorch's kernel into Keras's as it stands."""
    main = next((key for key in ("kernel", "query_kernel") if key in torch.arrays), None)
    if main is None:
        return
    for name, mistake in _MISTAKES.items():
        made = mistake(torch, torch.arrays[main])
        right = keras.arrays[main]
        if made is not None and gap(made, right).relative <= tolerance:
            yield _Change(_copy(name), "right", "copied so", {}, torch.arrays)


def _untransposed(torch: Visit, kernel: np.ndarray) -> np.ndarray | None:
    return kernel.T if torch.kind == "dense" and torch.input_order is None else None


def _unordered(torch: Visit, kernel: np.ndarray) -> np.ndarray | None:
    if torch.kind != "dense" or torch.input_order is None:
        return None
    return kernel[np.argsort(torch.input_order)]


def _reshaped(torch: Visit, kernel: np.ndarray) -> np.ndarray | None:
    if not torch.kind.startswith("conv"):
        return None
    return np.moveaxis(kernel, (-2, -1), (1, 0)).reshape(kernel.shape)


def _gates(torch: Visit, kernel: np.ndarray) -> np.ndarray | None:
    if torch.kind != "gru":
        return None
    update, reset, new = np.split(kernel, 3, axis=1)
    return np.concatenate([reset, update, new], axis=1)


def _heads(torch: Visit, kernel: np.ndarray) -> np.ndarray | None:
    if torch.kind != "attention":
        return None
    return kernel.reshape(len(kernel), -1).T.reshape(kernel.shape)


_MISTAKES: dict[str, Callable[[Visit, np.ndarray], np.ndarray | None]] = {
    "Flatten order: PyTorch flattens (channel, height, width), Keras (height, width, channel), and"
    " the kernel's rows were copied without reordering them": _unordered,
    "A square kernel copied without transposing it": _untransposed,
    "A convolution's kernel reshaped where its axes should move": _reshaped,
    "A GRU's gates in PyTorch's order (reset, update, new), not Keras's": _gates,
    "Attention's kernels copied without transposing them": _heads,
}
