"""What the wings hand over: neutral records of NumPy arrays, never a framework's tensor."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Bins of a histogram, and how many elements of a tensor a probe looks at.
BINS = 48
SAMPLE = 1024

#: Where a probe looks, as shares of a flattened tensor: multiples of the golden ratio, modulo 1,
#: spread evenly over every tensor and never fall into step with its rows or channels, as a fixed
#: stride can (Weyl 1916).
POSITIONS = (np.arange(1, SAMPLE + 1) * ((5**0.5 - 1) / 2)) % 1.0


@dataclass(frozen=True)
class Layer:
    """One layer of a model in the canonical form.

    Attributes
    ----------
    name : str
        The layer's own name in its framework (``"3"``, ``"encoder.norm"``, ``"dense_1"``).
    kind : str
        The canonical kind: ``"dense"``, ``"conv2d"``, ``"flatten"``, ``"relu"``, ...
    arrays : dict of str to numpy.ndarray
        Weights and state, in the channels-last layout that Keras uses: a dense ``kernel`` is
        (in, out), a convolution ``kernel`` (height, width, in, out), a ``bias`` (out,).
        The rows of a dense kernel that follows a flatten are in (height, width, channel) order.
    options : dict
        Hyper-parameters that change what the layer computes, by canonical name.
    """

    name: str
    kind: str
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """What a probe tells about one tensor, made where the tensor lives, from a bounded sample.

    Attributes
    ----------
    layer : str
        The layer's name in its framework.
    what : str
        ``"activation"`` or ``"gradient"`` (of the loss by the layer's output).
    counts : numpy.ndarray
        (BINS,) float32: the share of the finite sample in each of equal bins from ``low`` to
        ``high``.
    low, high : float
        The outer edges of the bins.
    mean, std : float
        Of the sample (standard deviation without Bessel's correction).
    zeros : float
        The share of exact zeros in the sample.
    """

    layer: str
    what: str
    counts: np.ndarray
    low: float
    high: float
    mean: float
    std: float
    zeros: float


def summaries(keys: list[tuple[str, str]], table: np.ndarray) -> tuple[Summary, ...]:
    """Turn what a probe reduced, (keys, 5 + BINS), into one Summary a row."""
    return tuple(
        Summary(layer, what, row[5:], *map(float, row[:5]))
        for (layer, what), row in zip(keys, table, strict=True)
    )
