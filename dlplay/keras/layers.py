"""Reads a Keras model's layers into the canonical form, and writes them back."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dlplay.errors import ModelError
from dlplay.records import Layer
from dlplay.settings import Precision

_DENSE = ("kernel", "bias")
_NORM = ("gamma", "beta")

#: Of each class that has weights: its canonical kind, and its arrays, whose names are canonical.
_KINDS: dict[type[keras.Layer], tuple[str, tuple[str, ...]]] = {
    keras.layers.Dense: ("dense", _DENSE),
    keras.layers.Conv1D: ("conv1d", _DENSE),
    keras.layers.Conv2D: ("conv2d", _DENSE),
    keras.layers.Conv3D: ("conv3d", _DENSE),
    keras.layers.Embedding: ("embedding", ("embeddings",)),
    keras.layers.LayerNormalization: ("layer_norm", _NORM),
    keras.layers.BatchNormalization: (
        "batch_norm",
        (*_NORM, "moving_mean", "moving_variance"),
    ),
}


def leaves(model: keras.Model) -> dict[str, keras.Layer]:
    """The layers that contain no others, by their path in the model; wrappers count as one."""
    found: dict[str, keras.Layer] = {}
    for layer in model.layers:
        inner = leaves(layer) if isinstance(layer, keras.Model) else {"": layer}
        for path, leaf in inner.items():
            found["/".join(filter(None, [layer.name, path]))] = leaf
    return found


@contextmanager
def calls_through(layer: keras.Layer, call: Callable[..., Any]) -> Iterator[None]:
    """Let ``call(original, *args, **kwargs)`` stand in for a layer's ``call`` in this context."""
    original = layer.call

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return call(original, *args, **kwargs)

    object.__setattr__(layer, "call", stand_in)
    try:
        yield
    finally:
        object.__delattr__(layer, "call")


def read(model: keras.Model, example: tf.Tensor) -> list[Layer]:
    """The layers that have weights, in the order in which ``example`` meets them.

    Parameters
    ----------
    example : tf.Tensor
        A small batch of inputs, as the model takes them; it builds the model where needed.

    Raises
    ------
    ModelError
        For a layer with weights of a class that has no canonical form here.
    """
    return [
        Layer(
            name=layer.path or layer.name,
            kind=_KINDS[type(layer)][0],
            arrays={key: np.array(variable) for key, variable in _variables(layer).items()},
        )
        for layer in _trace(model, example)
    ]


def write(model: keras.Model, example: tf.Tensor, layers: list[Layer]) -> None:
    """Write arrays into the model's layers, in the order of ``read``; the inverse of ``read``.

    Raises
    ------
    ModelError
        Where the number of layers, a kind, a name or a shape does not fit; then nothing is written.
    """
    targets = _trace(model, example)
    if len(targets) != len(layers):
        raise ModelError(
            f"The Keras model has {len(targets)} layers with weights, but {len(layers)} were given."
        )
    ready: list[tuple[keras.Variable, np.ndarray]] = []
    for target, layer in zip(targets, layers, strict=True):
        for key, variable in _variables(target).items():
            if key not in layer.arrays:
                raise ModelError(
                    f"Layer {target.name!r} needs {key!r}, which {layer.name!r} lacks."
                )
            array = layer.arrays[key]
            if array.shape != tuple(variable.shape):
                raise ModelError(
                    f"{key!r} of Keras layer {target.name!r} has shape {tuple(variable.shape)}, but"
                    f" {layer.name!r} gives {array.shape}."
                )
            ready.append((variable, array))
    for variable, array in ready:
        variable.assign(array)


def home(model: keras.Model) -> tuple[Precision, str]:
    """The floating-point type and the device of a model, by its first weight."""
    if not model.weights:
        return Precision(), "CPU:0"
    first = model.weights[0]
    device = first.value.device.rpartition("device:")[2] or "CPU:0"
    return Precision("float64" if first.dtype == "float64" else "float32"), device


def infer(model: keras.Model, x: tf.Tensor) -> tf.Tensor:
    """The model's output in inference mode."""
    return model(x, training=False)


def _variables(layer: keras.Layer) -> dict[str, keras.Variable]:
    found = {key: getattr(layer, key) for key in _KINDS[type(layer)][1]}
    return {key: variable for key, variable in found.items() if variable is not None}


def _trace(model: keras.Model, example: tf.Tensor) -> list[keras.Layer]:
    """Run the example once, and note each layer with weights when it is first called."""
    met: dict[int, keras.Layer] = {}

    def noting(layer: keras.Layer) -> Callable[..., Any]:
        def note(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if layer.weights and type(layer) not in _KINDS:
                kind = type(layer).__name__
                raise ModelError(
                    f"Layer {layer.name!r} is a {kind}, which has no canonical form yet."
                )
            if layer.weights:
                met.setdefault(id(layer), layer)
            return original(*args, **kwargs)

        return note

    if not model.built:
        infer(model, example)
    with ExitStack() as stack:
        for layer in leaves(model).values():
            stack.enter_context(calls_through(layer, noting(layer)))
        infer(model, example)
    return list(met.values())
