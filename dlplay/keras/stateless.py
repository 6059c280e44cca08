"""Keras's layers, activations and operations without weights, in the canonical form.

Source: https://keras.io/api/layers/ and https://keras.io/api/ops/
"""

from collections.abc import Callable, Mapping
from typing import Any

from keras import layers

from dlplay.keras.kinds import spatial, window_options
from dlplay.traces import Call, Part

#: Of each activation function, layer or operation, by its name in lower case without underscores:
#: its kind, and each option with the attribute that holds it and the function's own default.
_ACTIVATIONS: dict[str, tuple[str, dict[str, tuple[str, Any]]]] = {
    "relu": ("relu", {}),
    "relu6": ("relu6", {}),
    "leakyrelu": ("leaky_relu", {"negative_slope": ("negative_slope", 0.2)}),
    "elu": ("elu", {"alpha": ("alpha", 1.0)}),
    "celu": ("celu", {"alpha": ("alpha", 1.0)}),
    "selu": ("selu", {}),
    "gelu": ("gelu", {"approximate": ("approximate", False)}),
    "silu": ("silu", {}),
    "swish": ("silu", {}),
    "mish": ("mish", {}),
    "tanh": ("tanh", {}),
    "sigmoid": ("sigmoid", {}),
    "logsigmoid": ("log_sigmoid", {}),
    "softsign": ("softsign", {}),
    "softplus": ("softplus", {"beta": ("beta", 1.0)}),
    "hardsigmoid": ("hard_sigmoid", {}),
    "hardsilu": ("hard_silu", {}),
    "hardswish": ("hard_silu", {}),
    "hardtanh": ("hard_tanh", {"low": ("low", -1.0), "high": ("high", 1.0)}),
    "softshrink": ("soft_shrink", {"threshold": ("threshold", 0.5)}),
    "hardshrink": ("hard_shrink", {"threshold": ("threshold", 0.5)}),
    "tanhshrink": ("tanh_shrink", {}),
    "threshold": ("threshold", {"threshold": ("threshold_value", 0), "value": ("value", 0)}),
    "glu": ("glu", {}),
    "softmax": ("softmax", {"axis": ("axis", -1)}),
    "logsoftmax": ("log_softmax", {"axis": ("axis", -1)}),
}

_PLAIN = {
    layers.Flatten: "flatten",
    layers.Reshape: "reshape",
    layers.Permute: "permute",
    layers.Add: "add",
    layers.Multiply: "multiply",
    layers.Subtract: "subtract",
    layers.Concatenate: "concatenate",
    layers.Identity: "identity",
    layers.Rescaling: "rescaling",
    layers.Normalization: "normalization",
    **dict.fromkeys(
        (
            layers.GlobalAveragePooling1D,
            layers.GlobalAveragePooling2D,
            layers.GlobalAveragePooling3D,
        ),
        "global_average_pool",
    ),
    **dict.fromkeys(
        (layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D),
        "global_max_pool",
    ),
}

#: TensorFlow's own operations, and Keras's, that stand for a layer; others only pass data on.
_FUNCTIONS = {
    **{name: name.lower() for name in ("Add", "Multiply", "Subtract", "Reshape", "Concatenate")},
    "AddV2": "add",
    "Mul": "multiply",
    "Sub": "subtract",
    "ConcatV2": "concatenate",
    "Transpose": "permute",
}


def describe(layer: Any, call: Call) -> tuple[Part, ...] | None:
    """The canonical parts of a layer without weights; None where its class has no such form."""
    for parent in type(layer).__mro__:
        if parent in _PLAIN:
            return (Part(_PLAIN[parent]),)
        if parent in _MADE:
            return (_MADE[parent](layer, call),)
    return None


def describe_function(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], call: Call
) -> Part | None:
    """The canonical part of an operation, by its name; None for one that is no layer.

    ``args`` may hold the operation itself, whose attributes are then its options.
    """
    if name in _FUNCTIONS:
        return Part(_FUNCTIONS[name])
    return activation(name, args[0] if args else None)


def activation(name: str, holder: Any = None) -> Part | None:
    """The part that an activation is, by its name; its options are ``holder``'s attributes."""
    found = _ACTIVATIONS.get(name.replace("_", "").lower())
    if found is None:
        return None
    kind, options = found
    return Part(kind, {key: _plain(getattr(holder, *pair)) for key, pair in options.items()})


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, type(None))) else float(value)


def _named_activation(layer: Any, call: Call) -> Part:
    function = layer.activation
    name = getattr(function, "__name__", type(function).__name__)
    return activation(name, function) or Part(name)


def _activation_layer(layer: Any, call: Call) -> Part:
    return activation(type(layer).__name__, layer) or Part(type(layer).__name__)


def _relu(layer: Any, call: Call) -> Part:
    slope, most, threshold = (
        float(value or 0.0) for value in (layer.negative_slope, layer.max_value, layer.threshold)
    )
    if (slope, threshold) == (0.0, 0.0) and most in (0.0, 6.0):
        return Part("relu6" if most else "relu")
    if (most, threshold) == (0.0, 0.0):
        return Part("leaky_relu", {"negative_slope": slope})
    return Part("relu", {"negative_slope": slope, "max_value": most, "threshold": threshold})


def _pool(layer: Any, call: Call) -> Part:
    window, strides = tuple(layer.pool_size), tuple(layer.strides)
    options = window_options(layer, call, window, strides) | {
        "size": window,
        "_padding": f"padding={layer.padding!r}",
    }
    largest = "Max" in type(layer).__name__
    padded = any(map(any, options["padding"]))
    options |= {"pad_value": float("-inf")} if largest else {"count_padding": not padded}
    return Part(f"{'max' if largest else 'average'}_pool{len(window)}d", options)


def _adaptive(layer: Any, call: Call) -> Part:
    kind = "max_pool" if "Max" in type(layer).__name__ else "average_pool"
    sizes = spatial(layer, call.output)
    return (
        Part(f"global_{kind}") if set(sizes) == {1} else Part(f"adaptive_{kind}", {"size": sizes})
    )


def _upsample(layer: Any, call: Call) -> Part:
    shape, given = call.output, getattr(layer, "data_format", "channels_last")
    sizes = shape[2:] if given == "channels_first" else shape[1:-1]
    mode = getattr(layer, "interpolation", "nearest")
    return Part("upsample", {"size": sizes, "interpolation": mode, "align_corners": False})


def _pad(layer: Any, call: Call) -> Part:
    padding = layer.padding
    pairs = (tuple(padding),) if isinstance(padding[0], int) else tuple(map(tuple, padding))
    return Part("pad", {"padding": pairs, "mode": "constant", "value": 0.0})


def _dropout(layer: Any, call: Call) -> Part:
    name = type(layer).__name__
    kind = "spatial_dropout" if name.startswith("Spatial") else "dropout"
    return Part("alpha_dropout" if name.startswith("Alpha") else kind, {"rate": layer.rate})


_POOLS = [
    getattr(layers, f"{kind}Pooling{rank}D") for kind in ("Max", "Average") for rank in (1, 2, 3)
]
_ADAPTIVE = [
    getattr(layers, name)
    for kind in ("Max", "Average")
    for rank in (1, 2, 3)
    if hasattr(layers, name := f"Adaptive{kind}Pooling{rank}D")
]

_MADE: dict[type, Callable[[Any, Call], Part]] = {
    layers.Activation: _named_activation,
    layers.ReLU: _relu,
    **dict.fromkeys((layers.LeakyReLU, layers.ELU, layers.Softmax), _activation_layer),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(_ADAPTIVE, _adaptive),
    **dict.fromkeys((layers.UpSampling1D, layers.UpSampling2D, layers.UpSampling3D), _upsample),
    **dict.fromkeys((layers.ZeroPadding1D, layers.ZeroPadding2D, layers.ZeroPadding3D), _pad),
    **dict.fromkeys((layers.Dropout, layers.AlphaDropout), _dropout),
    **dict.fromkeys(
        (layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D), _dropout
    ),
}
