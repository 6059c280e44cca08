"""Four pairs of the same network, written natively in PyTorch and in Keras, on the digits.

Each pair says how PyTorch's parameters lie in Keras's layout, and which of them have a gradient
that is zero in theory: a bias before BatchNorm, and the key bias of attention (the softmax does not
see what is added to all of its inputs). Those hold rounding noise only.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import keras
import numpy as np
import torch
from keras import layers
from torch import nn

from dlplay.data import load
from dlplay.keras import precision as keras_precision
from dlplay.settings import Precision

Read = Callable[[str], np.ndarray]

TOKENS, WIDTH, HEADS, LENGTH = 17, 32, 2, 16  # head size 16: its scale, 1/4, is exact in float32


@dataclass(frozen=True)
class Pair:
    """Two models with the same weights.

    Attributes
    ----------
    x_torch, x_keras, y : numpy.ndarray
        The digits as each model takes them, and their labels.
    link : callable
        Takes a function that reads a PyTorch parameter (or its gradient) by name, and gives all
        of them in the order and the layout of Keras's trainable variables.
    zero : dict of int to str
        Those whose gradient is zero in theory, by their place in ``link``, with PyTorch's names.
    """

    torch: nn.Module
    keras: keras.Model
    x_torch: np.ndarray
    x_keras: np.ndarray
    y: np.ndarray
    link: Callable[[Read], list[np.ndarray]]
    zero: dict[int, str] = field(default_factory=dict)

    def from_torch(self, gradients: bool = False) -> list[np.ndarray]:
        """PyTorch's parameters, or their gradients, in Keras's layout."""
        parameters = dict(self.torch.named_parameters())

        def read(name: str) -> np.ndarray:
            tensor = parameters[name].grad if gradients else parameters[name]
            return tensor.detach().numpy()

        return self.link(read)

    def copy(self) -> None:
        """Copy PyTorch's weights into the Keras model."""
        variables = self.keras.trainable_variables
        for variable, array in zip(variables, self.from_torch(), strict=True):
            variable.assign(array)


def build(name: str, dtype: str) -> Pair:
    """Build a pair: ``"mlp"``, ``"cnn"``, ``"lstm"`` or ``"transformer"``; weights are drawn anew.

    ``dtype`` is ``"float32"`` or ``"float64"``.
    """
    torch.manual_seed(0)
    with keras_precision.scope(Precision(dtype), "CPU:0"):
        pair = {"mlp": _mlp, "cnn": _cnn, "lstm": _lstm, "transformer": _transformer}[name](dtype)
    pair.torch.to(getattr(torch, dtype))
    pair.copy()
    return pair


def _images(dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    digits = load("digits")
    x = digits.x_train.astype(dtype)
    return np.moveaxis(x, -1, 1), x, digits.y_train


def _tokens() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every fourth pixel as one of 17 grey values: ids that repeat in a batch."""
    digits = load("digits")
    ids = np.rint(digits.x_train.reshape(len(digits.x_train), -1)[:, ::4] * 16).astype(np.int64)
    return ids, ids, digits.y_train


def _mlp(dtype: str) -> Pair:
    ours = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)
    )
    theirs = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(32, activation="relu"),
            layers.Dense(10),
        ]
    )

    def link(read: Read) -> list[np.ndarray]:
        return [array for n in "135" for array in (read(f"{n}.weight").T, read(f"{n}.bias"))]

    return Pair(ours, theirs, *_images(dtype), link)


def _cnn(dtype: str) -> Pair:
    ours = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    theirs = keras.Sequential([keras.Input((8, 8, 1)), *_block(8), *_block(16)])
    theirs.add(layers.Flatten())
    theirs.add(layers.Dense(10))

    def link(read: Read) -> list[np.ndarray]:
        blocks = []
        for conv, norm in ("01", "45"):
            blocks += [read(f"{conv}.weight").transpose(2, 3, 1, 0), read(f"{conv}.bias")]
            blocks += [read(f"{norm}.weight"), read(f"{norm}.bias")]
        dense = read("9.weight").reshape(10, 16, 2, 2).transpose(2, 3, 1, 0).reshape(64, 10)
        return [*blocks, dense, read("9.bias")]

    return Pair(ours, theirs, *_images(dtype), link, {1: "0.bias", 5: "4.bias"})


def _block(filters: int) -> list[layers.Layer]:
    return [
        layers.Conv2D(filters, 3, padding="same"),
        layers.BatchNormalization(momentum=0.9, epsilon=1e-5),
        layers.ReLU(),
        layers.MaxPooling2D(2),
    ]


class _LSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        nn.init.zeros_(self.lstm.bias_hh_l0).requires_grad_(False)  # Keras has one bias
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sequence, _ = self.lstm(self.embedding(x))
        return self.head(sequence[:, -1])


def _lstm(dtype: str) -> Pair:
    theirs = keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int64"),
            layers.Embedding(TOKENS, WIDTH),
            layers.LSTM(WIDTH),
            layers.Dense(10),
        ]
    )

    def link(read: Read) -> list[np.ndarray]:
        lstm = [read("lstm.weight_ih_l0").T, read("lstm.weight_hh_l0").T, read("lstm.bias_ih_l0")]
        return [read("embedding.weight"), *lstm, read("head.weight").T, read("head.bias")]

    return Pair(_LSTM(), theirs, *_tokens(), link)


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        self.block = nn.TransformerEncoderLayer(
            WIDTH, HEADS, dim_feedforward=2 * WIDTH, dropout=0.0, batch_first=True
        )
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.embedding(x) + self.positions).mean(1))


class _Positions(layers.Layer):
    def build(self, shape: tuple[int, ...]) -> None:
        self.positions = self.add_weight(shape=shape[1:], name="positions")

    def call(self, x: keras.KerasTensor) -> keras.KerasTensor:
        return x + self.positions


def _transformer(dtype: str) -> Pair:
    inputs = keras.Input((LENGTH,), dtype="int64")
    x = _Positions()(layers.Embedding(TOKENS, WIDTH)(inputs))
    attended = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(x, x)
    x = layers.LayerNormalization(epsilon=1e-5)(x + attended)
    hidden = layers.Dense(2 * WIDTH, activation="relu")(x)
    x = layers.LayerNormalization(epsilon=1e-5)(x + layers.Dense(WIDTH)(hidden))
    outputs = layers.Dense(10)(layers.GlobalAveragePooling1D()(x))

    def link(read: Read) -> list[np.ndarray]:
        def dense(name: str) -> list[np.ndarray]:
            return [read(f"{name}.weight").T, read(f"{name}.bias")]

        def norm(name: str) -> list[np.ndarray]:
            return [read(f"block.{name}.weight"), read(f"block.{name}.bias")]

        return [
            read("embedding.weight"),
            read("positions"),
            *_attention(read),
            *norm("norm1"),
            *dense("block.linear1"),
            *dense("block.linear2"),
            *norm("norm2"),
            *dense("head"),
        ]

    key_bias = {5: "block.self_attn.in_proj_bias (key)"}
    return Pair(_Transformer(), keras.Model(inputs, outputs), *_tokens(), link, key_bias)


def _attention(read: Read) -> list[np.ndarray]:
    """Query, key and value, then output: (width, heads, size) kernels and (heads, size) biases."""
    size = WIDTH // HEADS
    arrays = []
    weights = np.split(read("block.self_attn.in_proj_weight"), 3)
    biases = np.split(read("block.self_attn.in_proj_bias"), 3)
    for weight, bias in zip(weights, biases, strict=True):
        arrays += [weight.T.reshape(WIDTH, HEADS, size), bias.reshape(HEADS, size)]
    kernel = read("block.self_attn.out_proj.weight").T.reshape(HEADS, size, WIDTH)
    return [*arrays, kernel, read("block.self_attn.out_proj.bias")]
