"""What a Keras model is made of, and what it cannot be made of."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dlplay.errors import ModelError
from dlplay.keras.arrays import to_tensor
from dlplay.keras.hooks import calls_through
from dlplay.settings import Precision

#: Layers in which training mode means randomness, and nothing else.
_RANDOM = (
    keras.layers.Bidirectional,
    keras.layers.RNN,
    keras.layers.MultiHeadAttention,
    keras.layers.GaussianNoise,
)


def leaves(model: keras.Layer) -> dict[str, keras.Layer]:
    """The layers that contain no others, by their path in the model; wrappers count as one.

    Models and layers of the user's own that are made of layers are looked into.
    """
    found: dict[str, keras.Layer] = {}
    for layer in model._flatten_layers(include_self=False, recursive=False):
        inner = leaves(layer) if _is_composite(layer) else {"": layer}
        for path, leaf in inner.items():
            found["/".join(filter(None, [layer.name, path]))] = leaf
    return found


def _is_composite(layer: keras.Layer) -> bool:
    own = not type(layer).__module__.startswith("keras.")
    parts = layer._flatten_layers(include_self=False, recursive=False)
    alone = not layer._trainable_variables and not layer._non_trainable_variables
    kept = any(type(layer).call is parent.call for parent in _known_parents(layer))
    return isinstance(layer, keras.Model) or (own and bool(parts) and alone and not kept)


def _known_parents(layer: keras.Layer) -> list[Any]:
    return [
        parent
        for parent in type(layer).__mro__[1:]
        if parent.__module__.startswith("keras.") and hasattr(parent, "call")
    ]


def unbuilt(model: keras.Layer) -> bool:
    """Whether the model, or a layer in it, has no weights yet because it was never called."""
    return not model.built or any(not layer.built for layer in leaves(model).values())


def check(model: keras.Layer) -> None:
    """Refuse a model whose weights cannot be read as they stand.

    Raises
    ------
    ModelError
        For a quantized model, one whose weights lie in several types, or one with weights that
        are not finite.
    """
    for name, layer in leaves(model).items():
        if getattr(layer, "quantization_mode", None) is not None:
            raise ModelError(
                f"Keras layer {name!r} is quantized ({layer.quantization_mode}): give the model in"
                " floating point, from before it was quantized."
            )
    weights = [w for w in model.weights if "float" in w.dtype]
    for weight in weights:
        if not keras.ops.all(keras.ops.isfinite(weight)):
            raise ModelError(
                f"{weight.name!r} of Keras layer {weight.path.rpartition('/')[0]!r} holds values"
                " that are not finite (NaN or infinity): start from weights that are."
            )
        if weight.dtype != weights[0].dtype:
            raise ModelError(
                f"The Keras model is in more than one dtype: {weights[0].path!r} has"
                f" {weights[0].dtype}, {weight.path!r} has {weight.dtype}."
            )


@contextmanager
def mode(model: keras.Layer, training: bool) -> Iterator[None]:
    """Training mode with dropout off, or inference mode, in which the model is then called.

    Keras passes ``training`` with each call; layers that are random in training never see it.
    """

    def call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs | ({"training": False} if "training" in kwargs else {}))

    with ExitStack() as stack:
        for layer in leaves(model).values() if training else ():
            if "Dropout" in type(layer).__name__ or isinstance(layer, _RANDOM):
                stack.enter_context(calls_through(layer, call))
        yield


@contextmanager
def kept(model: keras.Layer) -> Iterator[None]:
    """Give the model and the random generators back as they were, also after an exception.

    Weights and the states of dropout's seeds, each layer's ``trainable``, and the generators of
    Python, NumPy and Keras. Keras draws unseeded seeds from Python's generator.
    """
    variables = [variable for variable in model.variables if variable._value is not None]
    before = [variable.numpy() for variable in variables]
    states = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)


def as_inputs(model: keras.Layer, arrays: tuple[np.ndarray, ...]) -> tuple[tf.Tensor, ...]:
    """A model's inputs as it takes them, from arrays that are batch first and channels last."""
    first = model.weights[0] if model.weights else None
    precision = Precision(
        "float64" if first is not None and first.dtype == "float64" else "float32"
    )
    device = "CPU:0" if first is None else first.value.device.rpartition("device:")[2]
    return tuple(to_tensor(array, precision, device or "CPU:0") for array in arrays)
