"""Keras's layers that have weights, in the canonical form.

Each function takes a layer and its call and gives the canonical parts in it. The canonical layout
is Keras's own, so most arrays go over as they are.
Source: https://keras.io/api/layers/
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers

from dlplay.errors import ModelError
from dlplay.traces import Call, Part, Shape, Slot, same_padding, spans, windowed


def describe(layer: Any, call: Call) -> tuple[Part, ...] | None:
    """The canonical parts of a layer that has weights; None where its class has no such form.

    A subclass counts as its parent where it keeps the parent's ``call``.

    Raises
    ------
    ModelError
        For a layer of a known class in a form that has no canonical one.
    """
    for parent in type(layer).__mro__:
        if parent in _KINDS:
            kept = type(layer).call is parent.call
            return _KINDS[parent](layer, call) if kept else None
    return None


def spatial(layer: Any, shape: Shape) -> Shape:
    """The spatial sizes in a shape, wherever the layer's ``data_format`` puts them."""
    return shape[2:] if layer.data_format == "channels_first" else shape[1:-1]


def window_options(layer: Any, call: Call, window: Shape, strides: Shape) -> dict[str, Any]:
    """Strides, and the padding that a layer's windows really read, from ``padding``."""
    sizes, outputs = spatial(layer, call.input), spatial(layer, call.output)
    before: Shape = (0,) * len(window)
    if layer.padding == "same":
        before = tuple(pair[0] for pair in same_padding(sizes, window, strides))
    elif layer.padding == "causal":
        before = tuple(width - 1 for width in window)
    return windowed(before, sizes, outputs, window, strides)


def _slots(**given: Any) -> dict[str, Slot]:
    """One slot a name; a variable alone is canonical as it is, and None is left out."""
    slots = {}
    for key, value in given.items():
        variable, *ways = value if isinstance(value, tuple) else (value,)
        if variable is not None:
            slots[key] = Slot((variable,), *ways)
    return slots


def _ordered(variable: Any, order: np.ndarray | None) -> Any:
    """A variable whose first canonical axis is a flattened image."""
    if order is None or variable is None:
        return variable
    inverse = np.argsort(order)
    return (variable, lambda array: array[order], lambda array: array[inverse])


def _dense(layer: Any, call: Call) -> tuple[Part, ...]:
    kernel = _ordered(layer.kernel, call.order)
    return (Part("dense", {}, _slots(kernel=kernel, bias=layer.bias)),)


def _conv_options(layer: Any, call: Call) -> dict[str, Any]:
    window = spans(tuple(layer.kernel_size), tuple(layer.dilation_rate))
    strides = tuple(layer.strides)
    return window_options(layer, call, window, strides) | {
        "dilation": tuple(layer.dilation_rate),
        "groups": getattr(layer, "groups", 1),
        "padding_mode": "constant",
        "_padding": f"padding={layer.padding!r}",
    }


def _conv(layer: Any, call: Call) -> tuple[Part, ...]:
    slots = _slots(kernel=layer.kernel, bias=layer.bias)
    return (Part(f"conv{layer.rank}d", _conv_options(layer, call), slots),)


def _depthwise_kernel(variable: Any) -> Any:
    """Keras's (*window, channels, multiplier) is a grouped kernel (*window, 1, channels * m)."""
    *window, channels, multiplier = variable.shape
    return (
        variable,
        lambda k: k.reshape(*window, 1, channels * multiplier),
        lambda k: k.reshape(*window, channels, multiplier),
    )


def _channels(layer: Any, call: Call) -> int:
    return call.input[1 if layer.data_format == "channels_first" else -1]


def _depthwise(layer: Any, call: Call) -> tuple[Part, ...]:
    options = _conv_options(layer, call) | {"groups": _channels(layer, call)}
    slots = _slots(kernel=_depthwise_kernel(layer.kernel), bias=layer.bias)
    return (Part(f"conv{layer.rank}d", options, slots),)


def _separable(layer: Any, call: Call) -> tuple[Part, ...]:
    """Two parts, as PyTorch would write it: a depthwise convolution and a pointwise one."""
    ones = (1,) * layer.rank
    first = _conv_options(layer, call) | {"groups": _channels(layer, call)}
    nothing = ((0, 0),) * layer.rank
    second = first | {"strides": ones, "padding": nothing, "dilation": ones, "groups": 1}
    kind = f"conv{layer.rank}d"
    depthwise = _slots(kernel=_depthwise_kernel(layer.depthwise_kernel))
    pointwise = _slots(kernel=layer.pointwise_kernel, bias=layer.bias)
    return (
        Part(kind, first, depthwise, "/depthwise"),
        Part(kind, second, pointwise, "/pointwise", (0,)),
    )


def _conv_transpose(layer: Any, call: Call) -> tuple[Part, ...]:
    strides, dilation = tuple(layer.strides), tuple(layer.dilation_rate)
    window = spans(tuple(layer.kernel_size), dilation)
    crops = []
    for size, count, width, stride in zip(
        spatial(layer, call.input), spatial(layer, call.output), window, strides, strict=True
    ):
        first = max(width - stride, 0) // 2 if layer.padding == "same" else 0
        crops.append((first, (size - 1) * stride + width - first - count))
    options = {
        "strides": strides,
        "crop": tuple(crops),
        "dilation": dilation,
        "groups": 1,
        "_padding": f"padding={layer.padding!r}, output_padding={layer.output_padding}",
    }
    slots = _slots(kernel=layer.kernel, bias=layer.bias)
    return (Part(f"conv{layer.rank}d_transpose", options, slots),)


def _batch_norm(layer: Any, call: Call) -> tuple[Part, ...]:
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    slots = _slots(**{name: _ordered(getattr(layer, name), call.order) for name in names})
    options = {
        "epsilon": layer.epsilon,
        "momentum": layer.momentum,
        "moving_variance_of": "biased",
    }
    return (Part("batch_norm", options, slots),)


def _axes(layer: Any) -> int:
    return len(layer.axis) if isinstance(layer.axis, (list, tuple)) else 1


def _layer_norm(layer: Any, call: Call) -> tuple[Part, ...]:
    if getattr(layer, "rms_scaling", False):
        raise ModelError("rms_scaling=True has no counterpart in PyTorch: use RMSNormalization.")
    slots = _slots(gamma=_ordered(layer.gamma, call.order), beta=_ordered(layer.beta, call.order))
    return (Part("layer_norm", {"epsilon": layer.epsilon, "axes": _axes(layer)}, slots),)


def _group_norm(layer: Any, call: Call) -> tuple[Part, ...]:
    channels = call.input[layer.axis]
    options = {
        "groups": channels if layer.groups == -1 else layer.groups,
        "epsilon": layer.epsilon,
    }
    return (Part("group_norm", options, _slots(gamma=layer.gamma, beta=layer.beta)),)


def _rms_norm(layer: Any, call: Call) -> tuple[Part, ...]:
    slots = _slots(gamma=_ordered(layer.scale, call.order))
    return (Part("rms_norm", {"epsilon": layer.epsilon, "axes": _axes(layer)}, slots),)


def _embedding(layer: Any, call: Call) -> tuple[Part, ...]:
    # mask_zero does not zero the row; it emits a mask, which PyTorch's padding_idx does not.
    options = {"padding_index": 0 if layer.mask_zero else None}
    return (Part("embedding", options, _slots(embeddings=layer.embeddings)),)


def _prelu(layer: Any, call: Call) -> tuple[Part, ...]:
    shape = tuple(layer.alpha.shape)
    shared = all(size == 1 for size in shape[:-1])
    alpha = (layer.alpha, np.ravel, lambda a: a.reshape(shape)) if shared else layer.alpha
    return (Part("prelu", {}, _slots(alpha=alpha)),)


def _activation_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _recurrent(layer: Any, call: Call, suffix: str = "") -> tuple[Part, ...]:
    cell, kind = layer.cell, {"LSTM": "lstm", "GRU": "gru"}.get(type(layer).__name__, "simple_rnn")
    if not isinstance(cell, (layers.LSTMCell, layers.GRUCell, layers.SimpleRNNCell)):
        raise ModelError(f"RNN({type(cell).__name__}) has no canonical form: use LSTM, GRU, ...")
    options: dict[str, Any] = {
        "activation": _activation_name(cell.activation),
        "go_backwards": layer.go_backwards,
    }
    if kind != "simple_rnn":
        options["recurrent_activation"] = _activation_name(cell.recurrent_activation)
    if kind == "gru":
        options["reset_after"] = cell.reset_after
    elif cell.use_bias:
        options["biases"] = 1
    slots = _slots(kernel=cell.kernel, recurrent_kernel=cell.recurrent_kernel, bias=cell.bias)
    return (Part(kind, options, slots, suffix),)


def _bidirectional(layer: Any, call: Call) -> tuple[Part, ...]:
    if layer.merge_mode != "concat":
        raise ModelError(
            f"merge_mode={layer.merge_mode!r} has no counterpart in PyTorch, which concatenates."
        )
    forward = _recurrent(layer.forward_layer, call, "/forward")
    return forward + _recurrent(layer.backward_layer, call, "/backward")


def _attention(layer: Any, call: Call) -> tuple[Part, ...]:
    if layer.key_dim != (layer.value_dim or layer.key_dim):
        raise ModelError("Attention with value_dim other than key_dim has no PyTorch counterpart.")
    slots: dict[str, Slot] = {}
    for name in ("query", "key", "value", "output"):
        dense = getattr(layer, f"{name}_dense")
        slots |= _slots(**{f"{name}_kernel": dense.kernel, f"{name}_bias": dense.bias})
    return (Part("attention", {"heads": layer.num_heads, "head_size": layer.key_dim}, slots),)


_KINDS: dict[type[keras.Layer], Callable[[Any, Call], tuple[Part, ...]]] = {
    layers.Dense: _dense,
    **dict.fromkeys((layers.Conv1D, layers.Conv2D, layers.Conv3D), _conv),
    **dict.fromkeys((layers.DepthwiseConv1D, layers.DepthwiseConv2D), _depthwise),
    **dict.fromkeys((layers.SeparableConv1D, layers.SeparableConv2D), _separable),
    **dict.fromkeys(
        (layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose), _conv_transpose
    ),
    layers.BatchNormalization: _batch_norm,
    layers.LayerNormalization: _layer_norm,
    layers.GroupNormalization: _group_norm,
    layers.RMSNormalization: _rms_norm,
    layers.Embedding: _embedding,
    layers.PReLU: _prelu,
    **dict.fromkeys((layers.RNN, layers.SimpleRNN, layers.LSTM, layers.GRU), _recurrent),
    layers.Bidirectional: _bidirectional,
    layers.MultiHeadAttention: _attention,
}
