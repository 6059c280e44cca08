"""PyTorch's modules and functions without weights, in the canonical form.

Source: https://docs.pytorch.org/docs/stable/nn.html
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from dlplay.traces import Call, Part, Shape, windowed

#: Kinds that give each element of the input its own element of the output, in its place.
_GIVEN: dict[type, tuple[str, dict[str, str]]] = {
    nn.ReLU: ("relu", {}),
    nn.ReLU6: ("relu6", {}),
    nn.LeakyReLU: ("leaky_relu", {"negative_slope": "negative_slope"}),
    nn.ELU: ("elu", {"alpha": "alpha"}),
    nn.CELU: ("celu", {"alpha": "alpha"}),
    nn.SELU: ("selu", {}),
    nn.SiLU: ("silu", {}),
    nn.Mish: ("mish", {}),
    nn.Tanh: ("tanh", {}),
    nn.Sigmoid: ("sigmoid", {}),
    nn.LogSigmoid: ("log_sigmoid", {}),
    nn.Softsign: ("softsign", {}),
    nn.Hardsigmoid: ("hard_sigmoid", {}),
    nn.Hardswish: ("hard_silu", {}),
    nn.Hardtanh: ("hard_tanh", {"low": "min_val", "high": "max_val"}),
    nn.Softshrink: ("soft_shrink", {"threshold": "lambd"}),
    nn.Hardshrink: ("hard_shrink", {"threshold": "lambd"}),
    nn.Tanhshrink: ("tanh_shrink", {}),
    nn.Softplus: ("softplus", {"beta": "beta"}),
    nn.Threshold: ("threshold", {"threshold": "threshold", "value": "value"}),
    nn.GLU: ("glu", {}),
    nn.Dropout: ("dropout", {"rate": "p"}),
    nn.AlphaDropout: ("alpha_dropout", {"rate": "p"}),
    **dict.fromkeys((nn.Dropout1d, nn.Dropout2d, nn.Dropout3d), ("spatial_dropout", {"rate": "p"})),
    nn.Flatten: ("flatten", {}),
    nn.Unflatten: ("reshape", {}),
    nn.Identity: ("identity", {}),
}


def describe(module: nn.Module, call: Call) -> tuple[Part, ...] | None:
    """The canonical parts of a module without weights; None where its class has no such form."""
    for parent in type(module).__mro__:
        if parent in _GIVEN:
            kind, names = _GIVEN[parent]
            return (Part(kind, {key: getattr(module, name) for key, name in names.items()}),)
        if parent in _MADE:
            return (_MADE[parent](module, call),)
    return None


def describe_function(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], call: Call
) -> Part | None:
    """The canonical part of a function's call, by its name; None for one that is no layer."""
    if name in _PLAIN_FUNCTIONS:
        return Part(_PLAIN_FUNCTIONS[name])
    if name == "pad":
        return _pad_function(*args, **kwargs)
    if name == "mean":
        return _mean(args, kwargs, call)
    if name not in _AS_MODULE:
        return None
    kept = {key: value for key, value in kwargs.items() if key not in _NOT_OF_MODULES}
    made = _AS_MODULE[name](*args[: _FIRST.get(name, len(args))], **kept)
    parts = describe(made, call)
    return parts[0] if parts else None


def _tuple(value: Any, rank: int) -> Shape:
    return (int(value),) * rank if isinstance(value, (int, float)) else tuple(value)


def _softmax(module: Any, call: Call) -> Part:
    kind = "log_softmax" if isinstance(module, nn.LogSoftmax) else "softmax"
    axis = 1 if module.dim is None else module.dim
    # The channel of an image is the last axis in the canonical form, and axis 1 in PyTorch.
    rank = len(call.input)
    axis = axis % rank
    last = axis == (1 if rank >= 4 else rank - 1)
    return Part(kind, {"axis": -1 if last else axis})


def _gelu(module: Any, call: Call) -> Part:
    return Part("gelu", {"approximate": module.approximate == "tanh"})


def _pool(module: Any, call: Call, kind: str) -> Part:
    rank = int(type(module).__name__[-2])
    window = _tuple(module.kernel_size, rank)
    strides = window if module.stride is None else _tuple(module.stride, rank)
    before = _tuple(module.padding, rank)
    sizes, outputs = call.input[-rank:], call.output[-rank:]
    options = windowed(before, sizes, outputs, window, strides) | {
        "size": window,
        "_padding": f"padding={module.padding}",
    }
    if kind == "max_pool":
        options["pad_value"] = float("-inf")
    else:
        options["count_padding"] = module.count_include_pad or not any(map(any, options["padding"]))
    return Part(f"{kind}{rank}d", options)


def _max_pool(module: Any, call: Call) -> Part:
    return _pool(module, call, "max_pool")


def _average_pool(module: Any, call: Call) -> Part:
    return _pool(module, call, "average_pool")


def _adaptive(module: Any, call: Call) -> Part:
    rank = int(type(module).__name__[-2])
    kind = "max_pool" if "Max" in type(module).__name__ else "average_pool"
    sizes = call.output[-rank:]
    if set(sizes) == {1}:
        return Part(f"global_{kind}")
    return Part(f"adaptive_{kind}", {"size": sizes})


def _upsample(module: Any, call: Call) -> Part:
    rank = len(call.input) - 2
    options = {
        "size": call.output[-rank:],
        "interpolation": {"linear": "bilinear"}.get(module.mode, module.mode),
        "align_corners": bool(module.align_corners),
    }
    return Part("upsample", options)


def _pad_module(module: Any, call: Call) -> Part:
    name = type(module).__name__
    modes = {"Refl": "reflect", "Repl": "replicate", "Circ": "circular"}
    return _pads(module.padding, modes.get(name[:4], "constant"), getattr(module, "value", 0.0))


def _pad_function(pad: tuple[int, ...], mode: str = "constant", value: float | None = None) -> Part:
    return _pads(pad, mode, value or 0.0)


def _pads(pad: tuple[int, ...], mode: str, value: float) -> Part:
    """PyTorch lists the last axis first; the canonical form lists the first spatial axis first."""
    pairs = tuple(zip(pad[::2], pad[1::2], strict=True))[::-1]
    return Part("pad", {"padding": pairs, "mode": mode, "value": float(value)})


def _mean(args: tuple[Any, ...], kwargs: Mapping[str, Any], call: Call) -> Part | None:
    axes = kwargs.get("dim", args[0] if args else None)
    rank = len(call.input)
    given = [axes] if isinstance(axes, int) else list(axes or ())
    spatial = sorted(axis % rank for axis in given)
    whole = spatial and spatial == list(range(2, rank)) and rank > 3
    return Part("global_average_pool") if whole else Part("mean")


_MADE: dict[type, Callable[[Any, Call], Part]] = {
    nn.Softmax: _softmax,
    nn.LogSoftmax: _softmax,
    nn.GELU: _gelu,
    **dict.fromkeys((nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d), _max_pool),
    **dict.fromkeys((nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d), _average_pool),
    **dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d), _adaptive),
    **dict.fromkeys((nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d), _adaptive),
    nn.Upsample: _upsample,
    **dict.fromkeys((nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d), _pad_module),
    **dict.fromkeys((nn.ConstantPad1d, nn.ConstantPad2d, nn.ConstantPad3d), _pad_module),
    **dict.fromkeys((nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d), _pad_module),
    **dict.fromkeys((nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d), _pad_module),
}

_PLAIN_FUNCTIONS = {
    **{name: name for name in ("flatten", "add", "multiply", "concatenate", "tanh", "sigmoid")},
    "iadd": "add",
    "radd": "add",
    "mul": "multiply",
    "imul": "multiply",
    "rmul": "multiply",
    "sub": "subtract",
    "isub": "subtract",
    "cat": "concatenate",
    "concat": "concatenate",
    "view": "reshape",
    "reshape": "reshape",
    "permute": "permute",
    "transpose": "permute",
}

#: A function's arguments behind the tensor are, in this order, those of the module.
_AS_MODULE: dict[str, Callable[..., nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "celu": nn.CELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "softplus": nn.Softplus,
    "softsign": nn.Softsign,
    "logsigmoid": nn.LogSigmoid,
    "hardsigmoid": nn.Hardsigmoid,
    "hardswish": nn.Hardswish,
    "hardtanh": nn.Hardtanh,
    "softshrink": nn.Softshrink,
    "hardshrink": nn.Hardshrink,
    "tanhshrink": nn.Tanhshrink,
    "threshold": nn.Threshold,
    "glu": nn.GLU,
    "softmax": nn.Softmax,
    "log_softmax": nn.LogSoftmax,
    "dropout": nn.Dropout,
    "dropout2d": nn.Dropout2d,
    "alpha_dropout": nn.AlphaDropout,
    "max_pool1d": nn.MaxPool1d,
    "max_pool2d": nn.MaxPool2d,
    "max_pool3d": nn.MaxPool3d,
    "avg_pool1d": nn.AvgPool1d,
    "avg_pool2d": nn.AvgPool2d,
    "avg_pool3d": nn.AvgPool3d,
    "adaptive_avg_pool1d": nn.AdaptiveAvgPool1d,
    "adaptive_avg_pool2d": nn.AdaptiveAvgPool2d,
    "adaptive_avg_pool3d": nn.AdaptiveAvgPool3d,
    "adaptive_max_pool2d": nn.AdaptiveMaxPool2d,
    "interpolate": nn.Upsample,
}
#: How many of these arguments a module takes by position, where it takes fewer.
_FIRST = {"softmax": 1, "log_softmax": 1, "dropout": 1, "dropout2d": 1, "alpha_dropout": 1}
_NOT_OF_MODULES = {"input", "training", "inplace", "dtype", "_stacklevel", "antialias"}
