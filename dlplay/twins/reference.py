"""What a canonical layer computes, in NumPy and float64: the third opinion in every explanation.

Inputs and outputs are channels-last. Where an option of a layer is said to be what parts two
models, the layer is computed here with the other value, and must then agree.
"""

from collections.abc import Callable
from math import erf, prod
from typing import Any

import numpy as np

from dlplay.twins.recurrent import gru, lstm, simple_rnn

Arrays = dict[str, np.ndarray]
Options = dict[str, Any]


def compute(
    kind: str, options: Options, arrays: Arrays, x: np.ndarray, training: bool = False
) -> np.ndarray | None:
    """The output of one layer; None for a kind that has no reference here.

    Parameters
    ----------
    options, arrays : dict
        As in ``dlplay.traces.Part`` and ``Visit``.
    x : numpy.ndarray
        The layer's input, batch first, channels last.
    training : bool
        Whether batch normalization takes the batch's own statistics.
    """
    wide = {key: array.astype(np.float64) for key, array in arrays.items()}
    if kind in _ACTIVATIONS:
        return _ACTIVATIONS[kind](x.astype(np.float64), options)
    if kind == "batch_norm":
        return _batch_norm(x.astype(np.float64), options, wide, training)
    name = kind.rstrip("d").rstrip("123") if kind[-2:] in ("1d", "2d", "3d") else kind
    function = _LAYERS.get(name)
    if function is None:
        return None
    return function(x if kind == "embedding" else x.astype(np.float64), options, wide)


def _dense(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    return x @ arrays["kernel"] + arrays.get("bias", 0.0)


def _embedding(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    return arrays["embeddings"][x.astype(np.int64)]


def _windows(x: np.ndarray, options: Options, window: tuple[int, ...], fill: float) -> np.ndarray:
    """(batch, *outputs, channels, *window), padded as the options say."""
    rank = len(window)
    dilation = options.get("dilation", (1,) * rank)
    spans = tuple((size - 1) * step + 1 for size, step in zip(window, dilation, strict=True))
    padded = np.pad(x, ((0, 0), *options["padding"], (0, 0)), constant_values=fill)
    axes = tuple(range(1, rank + 1))
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=axes)
    outer = tuple(slice(None, None, step) for step in options["strides"])
    inner = tuple(slice(None, None, step) for step in dilation)
    return views[(slice(None), *outer, slice(None), *inner)]


def _conv(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    kernel, groups = arrays["kernel"], options["groups"]
    *window, inputs, outputs = kernel.shape
    views = _windows(x, options, tuple(window), 0.0)
    lead = views.shape[: -len(window) - 1]
    rows = views.reshape(-1, groups, inputs, prod(window)).transpose(1, 0, 3, 2)
    columns = kernel.reshape(prod(window), inputs, groups, outputs // groups)
    made = rows.reshape(groups, -1, prod(window) * inputs) @ columns.transpose(2, 0, 1, 3).reshape(
        groups, prod(window) * inputs, -1
    )
    return made.transpose(1, 0, 2).reshape(*lead, outputs) + arrays.get("bias", 0.0)


def _conv_transpose(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray | None:
    kernel, strides = arrays["kernel"], options["strides"]
    *window, outputs, _ = kernel.shape
    if options["groups"] != 1 or set(options["dilation"]) != {1}:
        return None
    sizes = x.shape[1:-1]
    full = [
        (size - 1) * step + width + max(0, -crop[1])
        for size, step, width, crop in zip(sizes, strides, window, options["crop"], strict=True)
    ]
    made = np.zeros((len(x), *full, outputs))
    for place in np.ndindex(*window):
        cells = tuple(
            slice(start, start + (size - 1) * step + 1, step)
            for start, size, step in zip(place, sizes, strides, strict=True)
        )
        made[(slice(None), *cells)] += x @ kernel[place].T
    cut = tuple(
        slice(first, size - max(last, 0))
        for size, (first, last) in zip(full, options["crop"], strict=True)
    )
    return made[(slice(None), *cut)] + arrays.get("bias", 0.0)


def _max_pool(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    size = options["size"]
    views = _windows(x, options, size, options["pad_value"])
    return views.max(axis=tuple(range(-len(size), 0)))


def _average_pool(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    size = options["size"]
    axes = tuple(range(-len(size), 0))
    total = _windows(x, options, size, 0.0).sum(axis=axes)
    if options["count_padding"]:
        return total / prod(size)
    return total / _windows(np.ones_like(x), options, size, 0.0).sum(axis=axes)


def _global_average_pool(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    return x.mean(axis=tuple(range(1, x.ndim - 1)))


def _global_max_pool(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    return x.max(axis=tuple(range(1, x.ndim - 1)))


def _pad(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray | None:
    if options["mode"] != "constant":
        return None
    pads = ((0, 0), *options["padding"], (0, 0))
    return np.pad(x, pads, constant_values=options["value"])


def _scaled(x: np.ndarray, arrays: Arrays) -> np.ndarray:
    return x * arrays.get("gamma", 1.0) + arrays.get("beta", 0.0)


def _batch_norm(x: np.ndarray, options: Options, arrays: Arrays, training: bool) -> np.ndarray:
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes) if training else arrays["moving_mean"]
    variance = x.var(axes) if training else arrays["moving_variance"]
    return _scaled((x - mean) / np.sqrt(variance + options["epsilon"]), arrays)


def _layer_norm(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    axes = tuple(range(-options["axes"], 0))
    centred = x - x.mean(axes, keepdims=True)
    return _scaled(centred / np.sqrt(x.var(axes, keepdims=True) + options["epsilon"]), arrays)


def _rms_norm(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    axes = tuple(range(-options["axes"], 0))
    square = np.square(x).mean(axes, keepdims=True)
    return _scaled(x / np.sqrt(square + options["epsilon"]), arrays)


def _group_norm(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    grouped = x.reshape(*x.shape[:-1], options["groups"], -1)
    axes = (*range(1, x.ndim - 1), -1)
    centred = grouped - grouped.mean(axes, keepdims=True)
    spread = np.sqrt(grouped.var(axes, keepdims=True) + options["epsilon"])
    return _scaled((centred / spread).reshape(x.shape), arrays)


def _prelu(x: np.ndarray, options: Options, arrays: Arrays) -> np.ndarray:
    return np.where(x > 0, x, arrays["alpha"] * x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(x / 2))


def _gelu(x: np.ndarray, options: Options) -> np.ndarray:
    if options["approximate"]:
        return x * _sigmoid(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3))
    return x * 0.5 * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2)))


def _softmax(x: np.ndarray, options: Options) -> np.ndarray:
    shifted = np.exp(x - x.max(options["axis"], keepdims=True))
    return shifted / shifted.sum(options["axis"], keepdims=True)


def _exponential(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


_LAYERS: dict[str, Callable[[np.ndarray, Options, Arrays], np.ndarray | None]] = {
    "dense": _dense,
    "embedding": _embedding,
    "conv": _conv,
    **{f"conv{rank}d_transpose": _conv_transpose for rank in (1, 2, 3)},
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _global_average_pool,
    "global_max_pool": _global_max_pool,
    "pad": _pad,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "prelu": _prelu,
    "simple_rnn": simple_rnn,
    "lstm": lstm,
    "gru": gru,
}

#: SELU's two constants: Klambauer et al. 2017.
_SELU = (1.0507009873554805, 1.6732632423543772)

_ACTIVATIONS: dict[str, Callable[[np.ndarray, Options], np.ndarray]] = {
    "relu": lambda x, o: np.maximum(x, 0),
    "relu6": lambda x, o: np.clip(x, 0, 6),
    "leaky_relu": lambda x, o: np.where(x > 0, x, o["negative_slope"] * x),
    "elu": lambda x, o: _exponential(x, o["alpha"]),
    "celu": lambda x, o: o["alpha"] * _exponential(x / o["alpha"], 1.0),
    "selu": lambda x, o: _SELU[0] * _exponential(x, _SELU[1]),
    "gelu": _gelu,
    "silu": lambda x, o: x * _sigmoid(x),
    "mish": lambda x, o: x * np.tanh(np.logaddexp(0, x)),
    "tanh": lambda x, o: np.tanh(x),
    "sigmoid": lambda x, o: _sigmoid(x),
    "log_sigmoid": lambda x, o: -np.logaddexp(0, -x),
    "softplus": lambda x, o: np.logaddexp(0, o["beta"] * x) / o["beta"],
    "softsign": lambda x, o: x / (1 + np.abs(x)),
    "hard_sigmoid": lambda x, o: np.clip(x / 6 + 0.5, 0, 1),
    "hard_silu": lambda x, o: x * np.clip(x / 6 + 0.5, 0, 1),
    "hard_tanh": lambda x, o: np.clip(x, o["low"], o["high"]),
    "soft_shrink": lambda x, o: np.sign(x) * np.maximum(np.abs(x) - o["threshold"], 0),
    "hard_shrink": lambda x, o: np.where(np.abs(x) > o["threshold"], x, 0),
    "tanh_shrink": lambda x, o: x - np.tanh(x),
    "glu": lambda x, o: np.split(x, 2, axis=-1)[0] * _sigmoid(np.split(x, 2, axis=-1)[1]),
    "softmax": _softmax,
    "log_softmax": lambda x, o: np.log(_softmax(x, o)),
    "dropout": lambda x, o: x,
    "spatial_dropout": lambda x, o: x,
    "identity": lambda x, o: x,
}
