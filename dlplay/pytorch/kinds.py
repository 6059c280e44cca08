"""PyTorch's modules that have weights, in the canonical form.

Each function takes a module and its call and gives the canonical parts in it. Layouts: a PyTorch
weight is (out, in, *window), the canonical kernel (*window, in, out).
Source: https://docs.pytorch.org/docs/stable/nn.html
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from dlplay.errors import ModelError
from dlplay.traces import Call, Part, Shape, Slot, spans, windowed


def describe(module: nn.Module, call: Call) -> tuple[Part, ...] | None:
    """The canonical parts of a module that has weights; None where its class has no such form.

    A subclass counts as its parent where it keeps the parent's ``forward``.

    Raises
    ------
    ModelError
        For a module of a known class in a form that has no canonical one.
    """
    for parent in type(module).__mro__:
        if parent in _KINDS:
            kept = type(module).forward is parent.forward  # type: ignore[attr-defined]
            return _KINDS[parent](module, call) if kept else None
    return None


def _slots(**given: tuple[torch.Tensor | None, Any, Any] | torch.Tensor | None) -> dict[str, Slot]:
    """One slot a name; a tensor alone is canonical as it is, and None is left out."""
    slots = {}
    for key, value in given.items():
        tensor, *ways = value if isinstance(value, tuple) else (value,)
        if tensor is not None:
            slots[key] = Slot((tensor,), *ways)
    return slots


def _ordered(tensor: torch.Tensor | None, order: np.ndarray | None) -> Any:
    """A tensor whose first canonical axis is a flattened image."""
    if order is None or tensor is None:
        return tensor
    inverse = np.argsort(order)
    return (tensor, lambda array: array[order], lambda array: array[inverse])


def _dense(module: Any, call: Call) -> tuple[Part, ...]:
    order = slice(None) if call.order is None else call.order
    inverse = slice(None) if call.order is None else np.argsort(call.order)
    kernel = (module.weight, lambda w: w.T[order], lambda k: k[inverse].T)
    return (Part("dense", {}, _slots(kernel=kernel, bias=module.bias)),)


def _kernel(weight: torch.Tensor) -> Any:
    return (
        weight,
        lambda w: np.moveaxis(w, (1, 0), (-2, -1)),
        lambda k: np.moveaxis(k, (-2, -1), (1, 0)),
    )


def _pads_before(module: Any) -> Shape:
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    if module.padding == "same":
        return tuple(
            (span - 1) // 2 for span in spans(tuple(module.kernel_size), tuple(module.dilation))
        )
    return tuple(module.padding)


def _conv(module: Any, call: Call) -> tuple[Part, ...]:
    window = spans(tuple(module.kernel_size), tuple(module.dilation))
    rank, strides = len(window), tuple(module.stride)
    sizes, outputs = call.input[-rank:], call.output[-rank:]
    options = windowed(_pads_before(module), sizes, outputs, window, strides) | {
        "dilation": tuple(module.dilation),
        "groups": module.groups,
        "padding_mode": "constant" if module.padding_mode == "zeros" else module.padding_mode,
        "_padding": f"padding={module.padding!r}",
    }
    slots = _slots(kernel=_kernel(module.weight), bias=module.bias)
    return (Part(f"conv{rank}d", options, slots),)


def _conv_transpose(module: Any, call: Call) -> tuple[Part, ...]:
    rank, strides = len(module.kernel_size), tuple(module.stride)
    crops = []
    for axis, window in enumerate(spans(tuple(module.kernel_size), tuple(module.dilation))):
        full = (call.input[axis - rank] - 1) * strides[axis] + window
        first = module.padding[axis]
        crops.append((first, full - first - call.output[axis - rank]))
    options = {
        "strides": strides,
        "crop": tuple(crops),
        "dilation": tuple(module.dilation),
        "groups": module.groups,
        "_padding": f"padding={module.padding}, output_padding={module.output_padding}",
    }
    # PyTorch's (in, out, *window) becomes (*window, out, in), the same move of axes.
    slots = _slots(kernel=_kernel(module.weight), bias=module.bias)
    return (Part(f"conv{rank}d_transpose", options, slots),)


def _batch_norm(module: Any, call: Call) -> tuple[Part, ...]:
    momentum = None if module.momentum is None else 1 - module.momentum
    order = call.order
    slots = _slots(
        gamma=_ordered(module.weight, order),
        beta=_ordered(module.bias, order),
        moving_mean=_ordered(module.running_mean, order),
        moving_variance=_ordered(module.running_var, order),
    )
    options = {"epsilon": module.eps, "momentum": momentum, "moving_variance_of": "unbiased"}
    return (Part("batch_norm", options, slots),)


def _layer_norm(module: Any, call: Call) -> tuple[Part, ...]:
    options = {"epsilon": module.eps, "axes": len(module.normalized_shape)}
    gamma, beta = _ordered(module.weight, call.order), _ordered(module.bias, call.order)
    return (Part("layer_norm", options, _slots(gamma=gamma, beta=beta)),)


def _group_norm(module: Any, call: Call) -> tuple[Part, ...]:
    options = {"groups": module.num_groups, "epsilon": module.eps}
    return (Part("group_norm", options, _slots(gamma=module.weight, beta=module.bias)),)


def _instance_norm(module: Any, call: Call) -> tuple[Part, ...]:
    if module.track_running_stats:
        raise ModelError("InstanceNorm with running statistics has no counterpart in Keras.")
    options = {"groups": module.num_features, "epsilon": module.eps}
    return (Part("group_norm", options, _slots(gamma=module.weight, beta=module.bias)),)


def _rms_norm(module: Any, call: Call) -> tuple[Part, ...]:
    dtype = torch.float32 if module.weight is None else module.weight.dtype
    epsilon = torch.finfo(dtype).eps if module.eps is None else module.eps
    options = {"epsilon": epsilon, "axes": len(module.normalized_shape)}
    return (Part("rms_norm", options, _slots(gamma=_ordered(module.weight, call.order))),)


def _embedding(module: Any, call: Call) -> tuple[Part, ...]:
    options = {"padding_index": module.padding_idx}
    return (Part("embedding", options, _slots(embeddings=module.weight)),)


def _prelu(module: Any, call: Call) -> tuple[Part, ...]:
    return (Part("prelu", {}, _slots(alpha=module.weight)),)


def _recurrent(module: Any, call: Call) -> tuple[Part, ...]:
    """One part for each layer and direction, in PyTorch's order: l0, l0_reverse, l1, ..."""
    if module.mode == "LSTM" and module.proj_size:
        raise ModelError("An LSTM with proj_size has no counterpart in Keras.")
    ends = ("", "_reverse") if module.bidirectional else ("",)
    parts = []
    for layer in range(module.num_layers):
        first = (layer - 1) * len(ends)
        after = tuple(range(first, first + len(ends))) if layer else ()
        parts += [_cell(module, f"l{layer}{end}", after) for end in ends]
    return tuple(parts)


def _cell(module: Any, name: str, after: tuple[int, ...]) -> Part:
    kind = {"LSTM": "lstm", "GRU": "gru"}.get(module.mode, "simple_rnn")
    # PyTorch stacks a GRU's gates reset, update, new; the canonical order is update, reset, new.
    gates = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2)}.get(kind, (0,))
    weights = [getattr(module, f"weight_{side}_{name}") for side in ("ih", "hh")]

    def swap(array: np.ndarray) -> np.ndarray:
        return np.concatenate([np.split(array, len(gates))[gate] for gate in gates])

    kernels = [(w, lambda a: swap(a).T, lambda a: swap(a.T)) for w in weights]
    slots = _slots(kernel=kernels[0], recurrent_kernel=kernels[1])
    if module.bias:
        biases = tuple(getattr(module, f"bias_{side}_{name}") for side in ("ih", "hh"))
        slots["bias"] = _two_biases(biases) if kind != "gru" else _stacked_biases(biases, swap)
    activation = "relu" if module.mode == "RNN_RELU" else "tanh"
    options: dict[str, Any] = {"activation": activation, "go_backwards": name.endswith("reverse")}
    if kind != "simple_rnn":
        options["recurrent_activation"] = "sigmoid"
    if kind == "gru":
        options["reset_after"] = True
    elif module.bias:
        options["biases"] = sum(bias.requires_grad for bias in biases)
    return Part(kind, options, slots, f".{name}", after)


def _two_biases(biases: tuple[Any, ...]) -> Slot:
    """The one canonical bias is the sum; by it, each of the two has the whole gradient."""
    return Slot(
        biases,
        lambda one, two: one + two,
        lambda bias: (bias, np.zeros_like(bias)),
        lambda one, two: one,
    )


def _stacked_biases(biases: tuple[Any, ...], swap: Callable[[np.ndarray], np.ndarray]) -> Slot:
    return Slot(
        biases,
        lambda one, two: np.stack([swap(one), swap(two)]),
        lambda bias: (swap(bias[0]), swap(bias[1])),
    )


class Rows:
    """Some rows of a parameter, as a variable of their own: attention stacks three in one."""

    def __init__(self, parameter: torch.Tensor, rows: slice) -> None:
        self.parameter, self.rows = parameter, rows


def _attention(module: Any, call: Call) -> tuple[Part, ...]:
    if module.bias_k is not None or module.add_zero_attn:
        raise ModelError("Attention with add_bias_kv or add_zero_attn has no counterpart in Keras.")
    heads, size, width = module.num_heads, module.head_dim, module.embed_dim
    slots: dict[str, Slot] = {}
    for row, name in enumerate(("query", "key", "value")):
        rows = slice(row * width, (row + 1) * width)
        own = getattr(module, f"{name[0]}_proj_weight")
        weight = Rows(module.in_proj_weight, rows) if own is None else own
        slots[f"{name}_kernel"] = Slot(
            (weight,), lambda w: w.T.reshape(-1, heads, size), lambda k: k.reshape(len(k), -1).T
        )
        if module.in_proj_bias is not None:
            bias = Rows(module.in_proj_bias, rows)
            slots[f"{name}_bias"] = Slot((bias,), lambda b: b.reshape(heads, size), np.ravel)
    slots["output_kernel"] = Slot(
        (module.out_proj.weight,),
        lambda w: w.T.reshape(heads, size, -1),
        lambda k: k.reshape(-1, k.shape[-1]).T,
    )
    slots |= _slots(output_bias=module.out_proj.bias)
    return (Part("attention", {"heads": heads, "head_size": size}, slots),)


_KINDS: dict[type, Callable[[Any, Call], tuple[Part, ...]]] = {
    nn.Linear: _dense,
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), _conv),
    **dict.fromkeys((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), _conv_transpose),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), _batch_norm),
    **dict.fromkeys((nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d), _instance_norm),
    nn.LayerNorm: _layer_norm,
    nn.GroupNorm: _group_norm,
    nn.RMSNorm: _rms_norm,
    nn.Embedding: _embedding,
    nn.PReLU: _prelu,
    **dict.fromkeys((nn.RNN, nn.LSTM, nn.GRU), _recurrent),
    nn.MultiheadAttention: _attention,
}
