"""The work that is timed in ``benchmarks.steps``: two networks, their data and their batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from dlplay import load
from dlplay.data import Dataset, batches
from dlplay.settings import Network, Run

CLASSES = 10


@dataclass(frozen=True)
class Work:
    """One network on one data set, and how many steps make a block.

    Attributes
    ----------
    name
        As in the table.
    settings
        As for ``dlplay.Training``; every batch has ``settings.batch_size`` examples.
    data
        The training set is a whole number of batches.
    block
        Steps in a block, a whole number of epochs.
    """

    name: str
    settings: Run
    data: Dataset
    block: int

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch."""
        return len(self.data.x_train) // self.settings.batch_size

    @property
    def warm_up(self) -> int:
        """Steps before the first block: so many that no block ends where an epoch ends."""
        return self.steps_per_epoch + self.steps_per_epoch // 2

    def rows(self) -> Iterator[np.ndarray]:
        """The rows of each batch, in the order in which a run takes them."""
        size, seed = self.settings.batch_size, self.settings.seed.value
        for epoch in count():
            yield from batches(len(self.data.x_train), size, seed, epoch)


def mlp_on_digits(epochs: int) -> Work:
    """The kit's MLP on the digits, batch 32."""
    digits = load("digits")
    whole = len(digits.x_train) // 32 * 32
    x, y = digits.x_train[:whole], digits.y_train[:whole]
    data = Dataset("digits", x, y, digits.x_test[:1], digits.y_test[:1], digits.classes)
    return _work("MLP, digits, batch 32", Network("mlp"), data, 32, epochs)


def cnn_on_images(epochs: int) -> Work:
    """The kit's CNN on 28x28 images, batch 64; noise, as nothing may be downloaded for this."""
    generator = np.random.default_rng(0)
    x = generator.random((16 * 64, 28, 28, 1), dtype=np.float32)
    y = generator.integers(0, CLASSES, len(x))
    data = Dataset("noise", x, y, x[:1], y[:1], tuple("0123456789"))
    return _work("CNN, 28x28, batch 64", Network("cnn"), data, 64, epochs)


def _work(name: str, network: Network, data: Dataset, size: int, epochs: int) -> Work:
    settings = Run(network, "digits", size, learning_rate=0.01, epochs=10_000)
    return Work(name, settings, data, epochs * (len(data.x_train) // size))
