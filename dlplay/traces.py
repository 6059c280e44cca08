"""What a wing sees while a model runs once: each layer's part, in neutral words and arrays."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlplay.errors import ModelError
from dlplay.records import Layer

Shape = tuple[int, ...]
#: Padding of each spatial axis: how much before, how much after.
Pads = tuple[tuple[int, int], ...]


def _same(array: np.ndarray) -> np.ndarray:
    return array


@dataclass(frozen=True)
class Slot:
    """Where one canonical array lives in a framework's model, and how to get there and back.

    Attributes
    ----------
    variables : tuple
        The framework's own variables; nearly always one, two for a recurrent layer's biases.
    read : callable
        Their arrays to the canonical one.
    back : callable
        The canonical array to theirs: one array, or a tuple of as many as there are variables.
    of_gradients : callable, optional
        Like ``read``, for gradients, where they do not convert as the weights do.
    """

    variables: tuple[Any, ...]
    read: Callable[..., np.ndarray] = _same
    back: Callable[[np.ndarray], Any] = _same
    of_gradients: Callable[..., np.ndarray] | None = None

    def split(self, array: np.ndarray) -> tuple[np.ndarray, ...]:
        """What each variable becomes when the canonical array is ``array``."""
        parts = self.back(array)
        return parts if isinstance(parts, tuple) else (parts,)

    def gradient(self, arrays: Iterable[np.ndarray | None]) -> np.ndarray | None:
        """The canonical gradient from the variables' own; None where one of them has none."""
        given = list(arrays)
        if self.of_gradients is not None:
            return None if given[0] is None else self.of_gradients(*given)
        return None if any(array is None for array in given) else self.read(*given)


@dataclass(frozen=True)
class Part:
    """One canonical layer inside a framework's layer; a stacked LSTM has several.

    ``options`` change what is computed; those that begin with ``_`` are how the framework's own
    code writes them, and are never compared. ``after`` are the places, in the layer's list of
    parts, of those that feed this one; the others take the layer's own input.
    """

    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    suffix: str = ""
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call:
    """What is known about one call of a layer when it is described.

    Attributes
    ----------
    input, output : tuple of int
        Shapes in the framework's own layout; of several inputs the first.
    order : numpy.ndarray, optional
        Where the input is a flattened image: the framework's index of each feature in
        (height, width, channel) order.
    """

    input: Shape
    output: Shape
    order: np.ndarray | None = None


@dataclass
class Visit:
    """One part of a model, met once by one forward pass; a shared layer is met more than once.

    Attributes
    ----------
    name : str
        In the framework's words: a module's or a layer's path, or a function's name.
    layer : object
        The framework's layer itself; None for a function.
    sources : tuple of int
        The visits whose outputs went into this one; empty for those that take the model's input.
    input, output : numpy.ndarray or None
        In the framework's own layout; None where it cannot be seen or was not asked for.
    final : numpy.ndarray or None
        Of a recurrent layer: the last state, where ``output`` is the whole sequence.
    gradient : numpy.ndarray or None
        Of the loss, by ``output``.
    order, input_order : numpy.ndarray or None
        As in ``Call``, of the output and of the input.
    arrays, gradients : dict of str to numpy.ndarray
        Weights, and the loss's gradients by them, canonical.
    """

    name: str
    part: Part
    sources: tuple[int, ...]
    layer: Any = None
    input: np.ndarray | None = None
    output: np.ndarray | None = None
    final: np.ndarray | None = None
    gradient: np.ndarray | None = None
    order: np.ndarray | None = None
    input_order: np.ndarray | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    gradients: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.part.kind

    @property
    def options(self) -> dict[str, Any]:
        return self.part.options


@dataclass
class Trace:
    """One pass of a model: its visits in the order in which they ran, and what came out.

    ``order`` is that of the output, as in ``Call``.
    """

    visits: list[Visit]
    output: np.ndarray
    loss: float | None = None
    order: np.ndarray | None = None


def flat_order(sizes: Shape, channels_first: bool) -> np.ndarray | None:
    """The index, in a flattened (channels, *spatial) array, of each (*spatial, channel) element.

    Parameters
    ----------
    sizes : tuple of int
        The shape before flattening, without the batch, in the framework's own layout.
    """
    if not channels_first:
        return None
    return np.moveaxis(np.arange(int(np.prod(sizes))).reshape(sizes), 0, -1).ravel()


def same_padding(sizes: Shape, window: Shape, strides: Shape) -> Pads:
    """What ``padding="same"`` adds: the odd element goes to the end.

    ``window`` is what a dilated kernel spans. Source: https://www.tensorflow.org/api_docs/python/tf/nn
    """
    pads = []
    for size, width, stride in zip(sizes, window, strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + width - size, 0)
        pads.append((total // 2, total - total // 2))
    return tuple(pads)


def windowed(
    before: Shape, sizes: Shape, outputs: Shape, window: Shape, strides: Shape
) -> dict[str, Any]:
    """The options of a layer that slides a window: strides, and the padding that it really reads.

    What lies behind the last window is left out, so that two ways of writing the same padding
    compare as equal. ``before`` is the padding in front of each axis.
    """
    reach = tuple(
        (count - 1) * stride + width
        for count, width, stride in zip(outputs, window, strides, strict=True)
    )
    return {
        "strides": strides,
        "padding": pads_read(before, sizes, reach),
        "_reach": reach,
        "_sizes": sizes,
    }


def pads_read(before: Shape, sizes: Shape, reach: Shape) -> Pads:
    """Padding before and after, of which windows that reach so far read anything."""
    return tuple(
        (first, max(end - size - first, 0))
        for first, size, end in zip(before, sizes, reach, strict=True)
    )


def spans(window: Shape, dilation: Shape) -> Shape:
    """How many elements a dilated window spans on each axis."""
    return tuple((size - 1) * step + 1 for size, step in zip(window, dilation, strict=True))


def first_visits(visits: Iterable[Visit]) -> list[Visit]:
    """The visits that have weights, in order; of a shared layer only its first."""
    found: dict[tuple[int, str], Visit] = {}
    for visit in visits:
        if visit.part.slots:
            found.setdefault((id(visit.layer), visit.part.suffix), visit)
    return list(found.values())


#: Arrays that one framework may leave out, and what a layer without them computes with.
NEUTRAL = {"bias": 0.0, "beta": 0.0, "moving_mean": 0.0, "gamma": 1.0, "moving_variance": 1.0}


def fitting(framework: str, visit: Visit, layer: Layer) -> list[tuple[Slot, np.ndarray]]:
    """The slots of a visit with the arrays of another framework's layer that go into them.

    An array that only one of the two has passes where it is neutral: a bias of zeros.

    Raises
    ------
    ModelError
        Where an array is missing, left over or of another shape; the message names it.
    """
    where = f"{framework} layer {visit.name!r}"
    for key in layer.arrays.keys() - visit.part.slots.keys():
        if key not in NEUTRAL or np.any(layer.arrays[key] != NEUTRAL[key]):
            raise ModelError(f"{where} has no {key!r} to take that of {layer.name!r}.")
    ready = []
    for key, slot in visit.part.slots.items():
        shape = visit.arrays[key].shape
        if key not in layer.arrays and key not in NEUTRAL:
            raise ModelError(f"{where} needs {key!r}, which {layer.name!r} lacks.")
        array = layer.arrays.get(key)
        array = np.full(shape, NEUTRAL[key]) if array is None else array
        if array.shape != shape:
            raise ModelError(
                f"{key!r} of {where} has shape {shape}, but {layer.name!r} gives {array.shape}."
            )
        ready.append((slot, array))
    return ready
