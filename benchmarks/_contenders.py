"""Who is timed in ``benchmarks.steps``: a dlplay run, a hand-written loop, and ``fit``.

Each makes its network by itself, with the same weights, and gives the seconds that a step took
in a block. Whatever happens once (build, trace, compile) is over after ``warm_up``.
"""

from collections.abc import Iterator
from itertools import islice
from time import perf_counter
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import torch
from torch import nn

from benchmarks._work import CLASSES, Work
from dlplay.frameworks import load_wing


class HandWritten:
    """The loop that PyTorch's documentation teaches, in the main thread.

    It picks each batch from tensors in memory, which is faster than a ``DataLoader``, and keeps
    what the run and ``fit`` keep: loss and accuracy of each batch.
    """

    def __init__(self, work: Work, threads: int) -> None:
        self._work, self._threads = work, threads
        self._rows = work.rows()
        self.model = build("pytorch", work)
        optimizer, rate = work.settings.optimizer, work.settings.learning_rate
        self._optimizer = torch.optim.SGD(self.model.parameters(), rate, optimizer.momentum)
        data = work.data
        self._x = torch.from_numpy(np.ascontiguousarray(np.moveaxis(data.x_train, -1, 1)))
        self._y = torch.from_numpy(data.y_train)

    def warm_up(self) -> None:
        """Make the steps before the first block."""
        self._train(self._work.warm_up)

    def block(self) -> float:
        """Make the steps of a block; seconds a step."""
        return self._train(self._work.block) / self._work.block

    def _train(self, steps: int) -> float:
        torch.set_num_threads(self._threads)
        batches = [torch.from_numpy(rows) for rows in islice(self._rows, steps)]
        loss_function, losses, accuracies = nn.CrossEntropyLoss(), [], []
        begin = perf_counter()
        for rows in batches:
            x, y = self._x[rows], self._y[rows]
            self._optimizer.zero_grad()
            logits = self.model(x)
            loss = loss_function(logits, y)
            loss.backward()
            self._optimizer.step()
            losses.append(loss.item())
            accuracies.append((logits.argmax(1) == y).float().mean().item())
        return perf_counter() - begin


class Fit:
    """Compiled ``model.fit`` as it is by default, without a word or a callback for each batch.

    A block is one epoch of its batches, and its time the epoch's own: what ``fit`` does before
    its first epoch is left out. ``pipeline`` feeds it by tf.data instead of NumPy arrays.
    """

    def __init__(self, work: Work, pipeline: bool) -> None:
        self._work, self._pipeline = work, pipeline
        self._rows = work.rows()
        self._clock = _EpochClock()
        self.model = build("keras", work)
        optimizer, rate = work.settings.optimizer, work.settings.learning_rate
        self.model.compile(
            optimizer=keras.optimizers.SGD(rate, momentum=optimizer.momentum),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )

    def warm_up(self) -> None:
        """Compile, and make the steps before the first block."""
        self._train(self._work.warm_up)

    def block(self) -> float:
        """Make the steps of a block; seconds a step."""
        return self._train(self._work.block) / self._work.block

    def _train(self, steps: int) -> float:
        rows, size = np.concatenate(list(islice(self._rows, steps))), self._work.settings.batch_size
        x, y = self._work.data.x_train[rows], self._work.data.y_train[rows]
        options = {"verbose": 0, "shuffle": False, "callbacks": [self._clock]}
        if self._pipeline:
            pairs = tf.data.Dataset.from_tensor_slices((x, y))
            self.model.fit(pairs.batch(size).prefetch(tf.data.AUTOTUNE), **options)
        else:
            self.model.fit(x, y, batch_size=size, **options)
        return self._clock.seconds


class _EpochClock(keras.callbacks.Callback):
    """Times an epoch; without methods for batches, Keras calls nothing for each batch."""

    seconds = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._begin = perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.seconds = perf_counter() - self._begin


def build(wing: str, work: Work) -> Any:
    """The kit's network, with weights that depend on the seed only."""
    rooms, settings = load_wing(wing), work.settings
    rooms.seeds.seed(settings.seed.value)
    return rooms.networks.build(settings.network, work.data.shape, CLASSES, settings.precision)


def weights(model: Any) -> Iterator[np.ndarray]:
    """All weights of a model of either framework."""
    if isinstance(model, nn.Module):
        yield from (parameter.detach().numpy() for parameter in model.parameters())
    else:
        yield from model.get_weights()


def apart(one: Any, other: Any) -> float:
    """The largest difference of two models' weights."""
    pairs = zip(weights(one), weights(other), strict=True)
    return max(float(np.abs(a - b).max()) for a, b in pairs)
