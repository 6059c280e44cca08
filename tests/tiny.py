"""A tiny network in both frameworks, written natively, and its training in a few lines."""

from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import torch
from torch import nn

from dlplay.keras import optimizers as keras_optimizers
from dlplay.pytorch import optimizers as torch_optimizers
from dlplay.settings import Optimizer

WINGS = ("pytorch", "keras")
_DRAW = np.random.default_rng(7)
X = _DRAW.normal(size=(60, 8, 5))
Y = _DRAW.normal(size=(60, 8, 3))
WEIGHTS = (
    _DRAW.normal(size=(5, 4)),
    _DRAW.normal(size=4),
    _DRAW.normal(size=(4, 3)),
    _DRAW.normal(size=3),
)


@dataclass(frozen=True)
class Training:
    """How to train: ``scale`` multiplies the loss, and so sets the size of the gradients."""

    optimizer: Optimizer
    learning_rate: float = 0.01
    steps: int = 50
    scale: float = 1.0
    dtype: str = "float64"
    changes: dict[int, float] = field(default_factory=dict)  # at step, learning rate

    def run(self, wing: str) -> np.ndarray:
        """All weights after training, flat, in Keras's layout."""
        return {"pytorch": _in_pytorch, "keras": _in_keras}[wing](self)

    def difference(self, likes: tuple[str, str] = ("own", "own")) -> float:
        """The largest relative difference of the two wings' weights."""
        runs = [
            Training(**{**vars(self), "optimizer": self.optimizer.replace(like=like)}).run(wing)
            for wing, like in zip(WINGS, likes, strict=True)
        ]
        return float(np.max(np.abs(runs[0] - runs[1])) / np.max(np.abs(runs[1])))


def torch_model(dtype: str = "float64") -> nn.Sequential:
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).to(getattr(torch, dtype))
    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), WEIGHTS, strict=True):
            parameter.copy_(torch.from_numpy(weight.T))
    return model


def keras_model(dtype: str = "float64") -> keras.Sequential:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((5,), dtype=dtype),
            layers.Dense(4, activation="tanh", dtype=dtype),
            layers.Dense(3, dtype=dtype),
        ]
    )
    model.set_weights(WEIGHTS)
    return model


def torch_weights(model: nn.Module) -> np.ndarray:
    return np.concatenate([p.detach().double().numpy().T.ravel() for p in model.parameters()])


def keras_weights(model: keras.Model) -> np.ndarray:
    return np.concatenate([v.numpy().astype(np.float64).ravel() for v in model.trainable_variables])


def _in_pytorch(training: Training) -> np.ndarray:
    model = torch_model(training.dtype)
    optimizer = torch_optimizers.make(model, training.optimizer, training.learning_rate)
    x, y = (torch.from_numpy(a).to(getattr(torch, training.dtype)) for a in (X, Y))
    for step in range(training.steps):
        if step in training.changes:
            torch_optimizers.set_learning_rate(optimizer, training.changes[step])
        optimizer.zero_grad()
        loss = training.scale * nn.functional.mse_loss(model(x[step % 60]), y[step % 60])
        loss.backward()
        optimizer.step()
    return torch_weights(model)


def _in_keras(training: Training) -> np.ndarray:
    model = keras_model(training.dtype)
    optimizer = keras_optimizers.make(model, training.optimizer, training.learning_rate)
    x, y = (tf.constant(a, training.dtype) for a in (X, Y))

    @tf.function
    def train(step: Any) -> None:
        with tf.GradientTape() as tape:
            loss = training.scale * tf.reduce_mean((model(x[step]) - y[step]) ** 2)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)

    for step in range(training.steps):
        if step in training.changes:
            keras_optimizers.set_learning_rate(optimizer, training.changes[step])
        train(tf.constant(step % 60))
    return keras_weights(model)
