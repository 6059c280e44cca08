"""The kit's own small networks, as PyTorch's documentation would write them."""

import math

from torch import nn

from dlplay.pytorch.precision import dtype
from dlplay.settings import Network, Precision

ACTIVATIONS = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
}


def build(
    network: Network, shape: tuple[int, ...], classes: int, precision: Precision
) -> nn.Sequential:
    """Build a network that gives logits.

    Parameters
    ----------
    shape : tuple of int
        Of one example, channels last: (height, width, channels), or (features,).
    classes : int
        How many logits.

    precision : Precision
        Of its weights; ``steps`` applies it to the computation.

    Raises
    ------
    SettingError
        Where a CNN is asked for data that are no images, or that are too small for its depth.
    """
    layers = (
        _cnn(network, shape, classes) if network.kind == "cnn" else _mlp(network, shape, classes)
    )
    return nn.Sequential(*layers).to(dtype(precision))


def _mlp(network: Network, shape: tuple[int, ...], classes: int) -> list[nn.Module]:
    activation = ACTIVATIONS[network.activation]
    layers: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
    features = math.prod(shape)
    for _ in range(network.depth):
        layers += [nn.Linear(features, network.width), activation()]
        features = network.width
    return [*layers, nn.Linear(features, classes)]


def _cnn(network: Network, shape: tuple[int, ...], classes: int) -> list[nn.Module]:
    height, width = network.final_size(shape)
    activation = ACTIVATIONS[network.activation]
    layers: list[nn.Module] = []
    channels, filters = shape[-1], network.width
    for _ in range(network.depth):
        layers += [
            nn.Conv2d(channels, filters, kernel_size=3, padding=1),
            activation(),
            nn.MaxPool2d(2),
        ]
        channels, filters = filters, 2 * filters
    hidden = 4 * network.width
    return [
        *layers,
        nn.Flatten(),
        nn.Linear(channels * height * width, hidden),
        activation(),
        nn.Linear(hidden, classes),
    ]
