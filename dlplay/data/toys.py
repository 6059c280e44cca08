"""Two toy sets of points in the plane, small enough to watch a network bend its boundary."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlplay.data.dataset import Dataset

COUNT = 1000
TRAIN = 800
ARMS = 3
TURNS = 0.75  # how far an arm winds, in full turns


def spirals(seed: int = 0, noise: float = 0.02) -> Dataset:
    """Three spiral arms, one a class, wound around the origin.

    A point of class k at distance r lies at the angle 2 pi (k / 3 + 0.75 r), r from 0.1 to 1,
    plus Gaussian noise of standard deviation ``noise`` in each coordinate. 800 points to train
    on and 200 to test on, float32. Source: Lang and Witbrock 1988, with a third arm.
    """
    random = np.random.default_rng(seed)
    label = np.arange(COUNT) % ARMS
    radius = random.uniform(0.1, 1.0, COUNT)
    angle = 2 * np.pi * (label / ARMS + TURNS * radius)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return _split("spirals", points, label, noise, random)


def moons(seed: int = 0, noise: float = 0.06) -> Dataset:
    """Two half circles, each reaching into the other: a boundary that no straight line makes.

    The upper one has its centre at (-1/3, -1/6), the lower one at (1/3, 1/6), both have radius
    2/3; plus Gaussian noise of standard deviation ``noise`` in each coordinate. 800 points to
    train on and 200 to test on, float32.
    """
    random = np.random.default_rng(seed)
    label = np.arange(COUNT) % 2
    side = 1 - 2 * label  # 1 for the upper moon, -1 for the lower one
    angle = random.uniform(0, np.pi, COUNT)
    x = side * (2 / 3 * np.cos(angle) - 1 / 3)
    y = side * (2 / 3 * np.sin(angle) - 1 / 6)
    return _split("moons", np.stack([x, y], axis=1), label, noise, random)


def _split(
    name: str,
    points: NDArray[np.float64],
    label: NDArray[np.integer[Any]],
    noise: float,
    random: np.random.Generator,
) -> Dataset:
    x = (points + random.normal(0, noise, points.shape)).astype(np.float32)
    y = label.astype(np.int64)
    order = random.permutation(COUNT)
    train, test = order[:TRAIN], order[TRAIN:]
    classes = tuple(f"class {index}" for index in range(label.max() + 1))
    return Dataset(name, x[train], y[train], x[test], y[test], classes)
