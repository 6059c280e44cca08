"""A growing series as at most some 300 points, at a cost that does not grow with it."""

from dataclasses import dataclass

import numpy as np

POINTS = 300
_CHECKED = 4


@dataclass(frozen=True)
class Points:
    """A series, ready to draw.

    Attributes
    ----------
    index : numpy.ndarray
        Where each point stands in the series; a bucket stands at its middle.
    mean, low, high : numpy.ndarray
        Of each bucket. ``mean`` is NaN where the bucket holds a value that is not finite, so
        that the line breaks there; ``low`` and ``high`` are those of the finite values, so that
        a single spike shows.
    bad : int
        The index of the first value that is not finite; -1 where all are.
    """

    index: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bad: int


class Decimator:
    """Keeps a growing series in buckets of equal width, a power of two.

    Each call is given the whole series so far and looks only at what is new; when there are too
    many buckets, they are merged in pairs. The first and the last value are always kept as
    they are. A series that does not continue the last one starts afresh.
    """

    _points: Points

    def __init__(self, points: int = POINTS) -> None:
        self._limit = points - 3  # the first, the last, and a bucket that is not full yet
        self._restart(np.empty(0))

    def update(self, values: np.ndarray) -> Points:
        """Take the series so far and give its points."""
        if not self._continues(values):
            self._restart(values)
        elif len(values) == self._seen:
            return self._points
        while len(values) > self._limit * self._width:
            self._merge()
        self._find_bad(values)
        full = len(values) // self._width
        if full > self._full:
            self._fill(values, full)
        self._remember(values)
        self._points = self._gather(values)
        return self._points

    def _restart(self, values: np.ndarray) -> None:
        self._width = 1
        self._full = 0
        self._seen = 0
        self._bad = -1
        self._buckets = np.empty((3, self._limit))
        self._head = values[:_CHECKED].tobytes()
        self._tail = b""
        self._points = Points(values[:0], values[:0], values[:0], values[:0], -1)

    def _continues(self, values: np.ndarray) -> bool:
        seen = self._seen
        return (
            len(values) >= seen
            and values[: min(seen, _CHECKED)].tobytes() == self._head
            and values[max(seen - _CHECKED, 0) : seen].tobytes() == self._tail
        )

    def _remember(self, values: np.ndarray) -> None:
        self._seen = len(values)
        self._head = values[:_CHECKED].tobytes()
        self._tail = values[max(self._seen - _CHECKED, 0) :].tobytes()

    def _merge(self) -> None:
        self._width *= 2
        self._full //= 2
        if self._full:
            pairs = self._buckets[:, : 2 * self._full].reshape(3, self._full, 2)
            self._buckets[:, : self._full] = _merge_pairs(pairs)

    def _find_bad(self, values: np.ndarray) -> None:
        if self._bad < 0:
            bad = ~np.isfinite(values[self._seen :])
            if bad.any():
                self._bad = self._seen + int(bad.argmax())

    def _fill(self, values: np.ndarray, full: int) -> None:
        new = values[self._full * self._width : full * self._width]
        self._buckets[:, self._full : full] = _summarise(new.reshape(-1, self._width))
        self._full = full

    def _gather(self, values: np.ndarray) -> Points:
        index = np.arange(self._full) * float(self._width) + (self._width - 1) / 2
        rows = self._buckets[:, : self._full]
        if self._width > 1:
            done, last = self._full * self._width, len(values) - 1
            ends = _summarise(values[[0, last]].reshape(2, 1))
            rest = _summarise(values[done:].reshape(1, -1)) if done <= last else rows[:, :0]
            middle = np.full(rest.shape[1], (done + last) / 2)
            index = np.concatenate([np.zeros(1), index, middle, np.full(1, float(last))])
            rows = np.concatenate([ends[:, :1], rows, rest, ends[:, 1:]], axis=1)
        return Points(index, rows[0].copy(), rows[1].copy(), rows[2].copy(), self._bad)


def _merge_pairs(pairs: np.ndarray) -> np.ndarray:
    """Merge buckets (3, n, 2) of equal width to (3, n)."""
    mean, low, high = pairs
    return np.stack([mean.mean(1), np.fmin.reduce(low, 1), np.fmax.reduce(high, 1)])


def _summarise(buckets: np.ndarray) -> np.ndarray:
    """The mean, low and high (3, n) of the values (n, width)."""
    finite = np.where(np.isfinite(buckets), buckets, np.nan)
    return np.stack([finite.mean(1), np.fmin.reduce(finite, 1), np.fmax.reduce(finite, 1)])
