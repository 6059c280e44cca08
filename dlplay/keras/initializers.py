"""Draws a model's weights anew, with Keras's own initializers."""

import keras
from keras import initializers

from dlplay.keras.structure import leaves
from dlplay.settings import Initializer


def apply(model: keras.Model, initializer: Initializer) -> None:
    """Draw every kernel of dense and convolution layers in place; biases become zero.

    ``"default"`` leaves what Keras drew when the model was made. Seed before calling.
    Source: https://keras.io/api/layers/initializers/
    """
    if initializer.name == "default":
        return
    for layer in leaves(model).values():
        if hasattr(layer, "kernel"):
            kernel = _draw(initializer)(layer.kernel.shape)
            layer.kernel.assign(kernel * initializer.gain)
            if getattr(layer, "bias", None) is not None:
                layer.bias.assign(keras.ops.zeros_like(layer.bias))


def _draw(initializer: Initializer) -> initializers.Initializer:
    match initializer.name:
        case "xavier_uniform":
            return initializers.GlorotUniform()
        case "xavier_normal":
            # Keras truncates its normal draws at two standard deviations, and PyTorch does not.
            return initializers.GlorotNormal()
        case "he_uniform":
            return initializers.HeUniform()
        case "he_normal":
            return initializers.HeNormal()
        case "orthogonal":
            return initializers.Orthogonal()
        case "normal":
            return initializers.RandomNormal(stddev=0.05)
    return initializers.Zeros()
