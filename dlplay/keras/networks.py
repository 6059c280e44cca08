"""The kit's own small networks, as Keras's documentation would write them."""

import keras
from keras import layers

from dlplay.keras.precision import dtype, scope
from dlplay.settings import Network, Precision


def build(
    network: Network, shape: tuple[int, ...], classes: int, precision: Precision
) -> keras.Sequential:
    """Build a network that gives logits.

    Parameters
    ----------
    shape : tuple of int
        Of one example, channels last: (height, width, channels), or (features,).
    classes : int
        How many logits.

    precision : Precision
        Of its weights and of its computation.

    Raises
    ------
    SettingError
        Where a CNN is asked for data that are no images, or that are too small for its depth.
    """
    with scope(precision, "CPU:0"):
        hidden = _cnn(network, shape) if network.kind == "cnn" else _mlp(network, shape)
        # Logits in full precision, as Keras's guide on mixed precision advises.
        logits = layers.Dense(classes, dtype=dtype(precision).name)
        return keras.Sequential([keras.Input(shape, dtype=logits.dtype), *hidden, logits])


def _mlp(network: Network, shape: tuple[int, ...]) -> list[layers.Layer]:
    flatten = [layers.Flatten()] if len(shape) > 1 else []
    return flatten + [
        layers.Dense(network.width, activation=network.activation) for _ in range(network.depth)
    ]


def _cnn(network: Network, shape: tuple[int, ...]) -> list[layers.Layer]:
    network.final_size(shape)
    activation = network.activation
    hidden: list[layers.Layer] = []
    for block in range(network.depth):
        filters = network.width * 2**block
        hidden += [
            layers.Conv2D(filters, 3, padding="same", activation=activation),
            layers.MaxPooling2D(2),
        ]
    dense = layers.Dense(4 * network.width, activation=activation)
    return [*hidden, layers.Flatten(), dense]
