"""Reads a Keras model's layers into the canonical form, and writes them back."""

import keras
import tensorflow as tf

from dlplay.errors import ModelError
from dlplay.keras.hooks import calls_through as calls_through
from dlplay.keras.structure import leaves
from dlplay.keras.tracing import follow
from dlplay.keras.variables import assign
from dlplay.records import Layer
from dlplay.settings import Precision
from dlplay.traces import Visit, first_visits, fitting

__all__ = ["home", "infer", "leaves", "read", "write"]


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
    visits = _visits(model, example)
    return [Layer(visit.name, visit.kind, visit.arrays, visit.options) for visit in visits]


def write(model: keras.Model, example: tf.Tensor, layers: list[Layer]) -> None:
    """Write arrays into the model's layers, in the order of ``read``; the inverse of ``read``.

    Raises
    ------
    ModelError
        Where the number of layers, a kind, a name or a shape does not fit; then nothing is written.
    """
    visits = _visits(model, example)
    if len(visits) != len(layers):
        raise ModelError(
            f"The Keras model has {len(visits)} layers with weights, but {len(layers)} were given."
        )
    pairs = list(zip(visits, layers, strict=True))
    assign([ready for visit, layer in pairs for ready in fitting("Keras", visit, layer)])


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


def _visits(model: keras.Model, example: tf.Tensor) -> list[Visit]:
    if not model.built:
        infer(model, example)
    return first_visits(follow(model, (example,)).visits)
