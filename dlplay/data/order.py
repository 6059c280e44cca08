"""The order of the batches: fixed by a seed, so that both frameworks see the same ones."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dlplay.errors import SettingError


def batches(count: int, batch_size: int, seed: int, epoch: int) -> Iterator[NDArray[np.int64]]:
    """Give the batches of one epoch, each as the indices of its examples.

    Each epoch is another permutation of all ``count`` examples, fixed by ``(seed, epoch)`` and
    the same on every platform; the last batch is smaller where ``batch_size`` does not divide
    ``count``.

    Parameters
    ----------
    count
        Examples in the training set.
    batch_size
        Examples in a batch, from 1 to ``count``.
    seed, epoch
        Whole numbers, at least 0.

    Yields
    ------
    int64 array, shape (batch_size,) or, for the last one, (at most batch_size,)

    Raises
    ------
    SettingError
        At the call, where the batch is larger than the set, or empty.
    """
    if not 1 <= batch_size <= count:
        raise SettingError(
            f"The batch size is {batch_size}, but the data set has {count} training examples:"
            f" choose a whole number from 1 to {count}."
        )
    order = np.random.default_rng([seed, epoch]).permutation(np.arange(count, dtype=np.int64))
    return (order[start : start + batch_size] for start in range(0, count, batch_size))
