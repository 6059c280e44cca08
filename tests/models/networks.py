"""Whole networks in both frameworks, as each framework's own documentation would write them."""

from typing import Any

import keras
import numpy as np
import torch
import torchvision
from keras import layers
from torch import nn


def resnet18_torch(classes: int = 10) -> nn.Module:
    return torchvision.models.resnet18(weights=None, num_classes=classes)


def _norm(x: Any) -> Any:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def _conv(x: Any, filters: int, window: int, strides: int) -> Any:
    if window > 1:
        x = layers.ZeroPadding2D(window // 2)(x)
    return layers.Conv2D(filters, window, strides, use_bias=False)(x)


def _block(x: Any, filters: int, strides: int) -> Any:
    y = layers.ReLU()(_norm(_conv(x, filters, 3, strides)))
    y = _norm(_conv(y, filters, 3, 1))
    if strides > 1:
        x = _norm(_conv(x, filters, 1, strides))
    return layers.ReLU()(layers.Add()([y, x]))


def resnet18_keras(size: int = 64, classes: int = 10) -> keras.Model:
    """He et al. 2015, as torchvision has it: symmetric padding, epsilon 1e-5."""
    inputs = keras.Input((size, size, 3))
    x = layers.ReLU()(_norm(_conv(inputs, 64, 7, 2)))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for filters, strides in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = _block(_block(x, filters, strides), filters, 1)
    outputs = layers.Dense(classes)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, outputs)


def mobilenet_torch(classes: int = 10) -> nn.Module:
    """torchvision's mobilenet_v2, padded and normalized as keras.applications has it."""
    model = torchvision.models.mobilenet_v2(weights=None, num_classes=classes)
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.BatchNorm2d):
            module.eps, module.momentum = 1e-3, 0.001
        if isinstance(module, nn.Conv2d) and module.stride == (2, 2):
            module.padding = (0, 0)
            parent, _, child = name.rpartition(".")
            padded = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), module)
            setattr(model.get_submodule(parent), child, padded)
    return model


def mobilenet_keras(size: int = 64, classes: int = 10) -> keras.Model:
    return keras.applications.MobileNetV2(
        (size, size, 3), weights=None, classes=classes, classifier_activation=None
    )


class TransformerTorch(nn.Module):
    """Ids to logits: embedding, encoder layers (Vaswani et al. 2017), mean over time."""

    def __init__(self, words: int = 20, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 2, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(width, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(ids)).mean(dim=1))


class EncoderBlock(layers.Layer):
    """A layer of one's own, made of Keras's layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, width // 2, dropout=0.1)
        self.norm1 = layers.LayerNormalization(epsilon=1e-5)
        self.hidden = layers.Dense(64, activation="relu")
        self.back = layers.Dense(width)
        self.norm2 = layers.LayerNormalization(epsilon=1e-5)
        self.dropout = layers.Dropout(0.1)

    def call(self, x: Any) -> Any:
        x = self.norm1(x + self.dropout(self.attention(x, x)))
        return self.norm2(x + self.dropout(self.back(self.hidden(x))))


class TransformerKeras(keras.Model):
    def __init__(self, words: int = 20, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.embedding = layers.Embedding(words, width)
        self.blocks = [EncoderBlock(width) for _ in range(depth)]
        self.head = layers.Dense(4)

    def call(self, ids: Any) -> Any:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(keras.ops.mean(x, axis=1))


class BidirectionalTorch(nn.Module):
    """Ids to logits by the last states of both directions."""

    def __init__(self, words: int = 20) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 12)
        self.lstm = nn.LSTM(12, 10, batch_first=True, bidirectional=True)
        self.head = nn.Linear(20, 4)
        for name, parameter in self.lstm.named_parameters():
            if "bias_hh" in name:  # Keras has one bias: two would move twice as fast
                nn.init.zeros_(parameter).requires_grad_(False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.lstm(self.embedding(ids))[1][0]
        return self.head(torch.cat([hidden[0], hidden[1]], dim=1))


def bidirectional_keras(words: int = 20) -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((7,), dtype="int64"),
            layers.Embedding(words, 12),
            layers.Bidirectional(layers.LSTM(10)),
            layers.Dense(4),
        ]
    )


def images(count: int, size: int, seed: int = 0) -> np.ndarray:
    """Smooth patterns, each its own: noise alone makes all of a deep network's features alike."""
    draw = np.random.default_rng(seed)
    grid = np.linspace(0, 2 * np.pi, size)
    waves = draw.uniform(0.5, 4.0, (count, 1, 1, 3)), draw.uniform(0.5, 4.0, (count, 1, 1, 3))
    phase = draw.uniform(0, 6, (count, 1, 1, 3))
    return np.sin(
        waves[0] * grid[None, :, None, None] + waves[1] * grid[None, None, :, None] + phase
    ) + 0.1 * draw.normal(size=(count, size, size, 3))


def calibrate(model: nn.Module, x: np.ndarray) -> None:
    """Give batch normalization statistics of real activations, as training would."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    tensor = torch.from_numpy(np.moveaxis(x, -1, 1).copy()).float()
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        model.train()(tensor)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.eval()
