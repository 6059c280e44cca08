"""What ``load`` returns: one data set as NumPy arrays, the same for both frameworks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set for classification, split into a training and a test part.

    Attributes
    ----------
    name
        As in ``dlplay.settings.DATASETS``.
    x_train, x_test
        float32. Images: shape (examples, height, width, channels), values from 0 to 1.
        Points in the plane: shape (examples, 2), coordinates from about -1 to 1.
    y_train, y_test
        int64, shape (examples,): the index of each example's class in ``classes``.
    classes
        The names of the classes.
    """

    name: str
    x_train: Floats
    y_train: Labels
    x_test: Floats
    y_test: Labels
    classes: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example: ``(8, 8, 1)`` for the digits, ``(2,)`` for points."""
        return self.x_train.shape[1:]

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name}: {len(self.x_train)} to train on, {len(self.x_test)} to test"
            f" on, {len(self.classes)} classes, each example {self.shape}>"
        )


def from_bytes(
    name: str,
    train: tuple[Bytes, Bytes],
    test: tuple[Bytes, Bytes],
    classes: tuple[str, ...],
    white: int = 255,
) -> Dataset:
    """Make a Dataset of uint8 images, (N, H, W) or (N, H, W, C), whose top value is ``white``."""
    parts = (_images(train[0], white), _labels(train[1]), _images(test[0], white), _labels(test[1]))
    return Dataset(name, *parts, classes)


def _images(images: Bytes, white: int) -> Floats:
    scaled = images.astype(np.float32)
    scaled /= white  # in place: CIFAR-10 is 737 MB in float32, and a third copy would double that
    return scaled[..., np.newaxis] if scaled.ndim == 3 else scaled


def _labels(labels: Bytes) -> Labels:
    return labels.astype(np.int64).reshape(-1)
