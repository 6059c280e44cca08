"""How far two arrays are apart, one from each framework, whatever their layout."""

from dataclasses import dataclass

import numpy as np

from dlplay.traces import Visit

#: Relative difference beyond which two models are said to part, by their type, and why.
#: float32: equal models were up to 5.4e-6 apart (MobileNetV2's logits; resnet18 7e-7), while the
#: smallest known cause, BatchNorm's epsilon of 1e-3 for 1e-5 at unit variance, makes 5.7e-5.
#: float64: constants that Keras rounds through float32 (bilinear upsampling) make up to 8e-8.
TOLERANCE = {"float32": 2e-5, "float64": 2e-7}


@dataclass(frozen=True)
class Gap:
    """The largest difference of one pair of arrays.

    Attributes
    ----------
    absolute : float
        max |a - b|; infinite where the shapes differ or only one side is a number.
    relative : float
        ``absolute`` over a scale, by default max |b| with b the Keras side; 0 where both are zero.
    """

    absolute: float
    relative: float

    def __str__(self) -> str:
        return f"{self.relative:.1e}"


NOWHERE = Gap(float("inf"), float("inf"))


def gap(a: np.ndarray, b: np.ndarray, scale: float | None = None) -> Gap:
    """Compare two arrays of one layout; ``scale`` replaces max |b|."""
    if a.shape != b.shape:
        return NOWHERE
    with np.errstate(invalid="ignore"):
        absolute, size = _largest(np.subtract(a, b)), _largest(b)
    if not np.isfinite(absolute):
        return _not_finite(a, b)
    size = size if scale is None else scale
    return Gap(absolute, absolute / size if size else absolute and float("inf"))


def _largest(array: np.ndarray) -> float:
    """max |array|, in one pass less than ``np.abs`` would take, and NaN where there is one."""
    if not array.size:
        return 0.0
    return max(float(array.max()), -float(array.min()))


def _not_finite(a: np.ndarray, b: np.ndarray) -> Gap:
    """Arrays with NaN or infinity agree where they have them in the same places."""
    return Gap(0.0, 0.0) if np.array_equal(a, b, equal_nan=True) else NOWHERE


def gradient_scale(visit: Visit) -> float:
    """The largest gradient by any weight of a layer."""
    return max((float(np.abs(g).max(initial=0.0)) for g in visit.gradients.values()), default=0.0)


def in_order(array: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    """Flattened images in (height, width, channel) order."""
    return array if order is None or array.ndim != 2 else array[:, order]


def as_like(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PyTorch's array in the layout of Keras's, by shape; where several fit, the nearest.

    Channels may be first, and axes of length one may be left out. An array that does not fit
    comes back as it is.
    """
    fitting = [form for form in _forms(a) if form.shape == b.shape]
    if not fitting and a.size == b.size and _long(a) == _long(b):
        fitting = [a.reshape(b.shape)]
    if len(fitting) > 1:
        fitting.sort(key=lambda form: float(np.nan_to_num(np.abs(form - b)).max(initial=0.0)))
    return fitting[0] if fitting else a


def _forms(a: np.ndarray) -> list[np.ndarray]:
    forms = [a]
    if a.ndim >= 3:
        forms += [np.moveaxis(a, 1, -1), np.moveaxis(a, -1, 1), np.swapaxes(a, 0, 1)]
    return forms


def _long(a: np.ndarray) -> tuple[int, ...]:
    return tuple(size for size in a.shape if size > 1)


def outputs(torch: Visit, keras: Visit) -> tuple[np.ndarray, np.ndarray] | None:
    """Both outputs in Keras's layout; None where one of them cannot be seen."""
    if torch.output is None or keras.output is None:
        return None
    one, two = in_order(torch.output, torch.order), in_order(keras.output, keras.order)
    if torch.final is not None and two.ndim == 2:
        one = torch.final
    return as_like(one, two), two


def inputs(torch: Visit, keras: Visit) -> tuple[np.ndarray, np.ndarray] | None:
    """Both inputs in Keras's layout; None where one of them was not kept."""
    if torch.input is None or keras.input is None:
        return None
    one = in_order(torch.input, torch.input_order)
    two = in_order(keras.input, keras.input_order)
    return as_like(one, two), two


def output_gradients(torch: Visit, keras: Visit) -> tuple[np.ndarray, np.ndarray] | None:
    """Both gradients of the loss by the output, in Keras's layout."""
    if torch.gradient is None or keras.gradient is None or torch.final is not None:
        return None
    one, two = in_order(torch.gradient, torch.order), in_order(keras.gradient, keras.order)
    one = as_like(one, two)
    return (one, two) if one.shape == two.shape else None
