"""Downloads data sets with torchvision, whose classes show a progress bar and verify MD5 sums.

The other wing's twin is ``dlplay/keras/datasets.py``.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torchvision import datasets

Bytes = NDArray[np.uint8]

_SETS = {
    "mnist": datasets.MNIST,
    "fashion-mnist": datasets.FashionMNIST,
    "cifar10": datasets.CIFAR10,
}


def fetch(name: str, folder: Path) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """Download a data set into a folder and read it: ``x_train, y_train, x_test, y_test``.

    Images are uint8, shape (N, height, width) or (N, height, width, channels); labels are uint8,
    shape (N,).

    Raises
    ------
    OSError, RuntimeError
        Whatever torchvision raises where a file cannot be had, or its checksum is wrong.
    """
    train = _SETS[name](folder, train=True, download=True)
    test = _SETS[name](folder, train=False)  # the same files
    return _bytes(train.data), _bytes(train.targets), _bytes(test.data), _bytes(test.targets)


def _bytes(values: object) -> Bytes:
    """MNIST holds tensors, CIFAR-10 an array and a list."""
    return np.asarray(values).astype(np.uint8)
