"""A snapshot as one frame: a small header that goes through JSON, and one float32 buffer.

The header says where in the buffer, counted in floats, each thing begins:

- a series ``{"at", "n", "band", "bad"}``: n places on the step axis, n values, and with a band
  n lows and n highs; ``bad`` is ``[step, "NaN" or "infinite"]`` where the first value that is
  not finite stands, or None;
- a summary ``[at, bins]``: low, high, mean, std, zeros, then the share in each bin.

Numbers that may be NaN or infinite are in the buffer only: JSON has no word for them.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dlplay.frameworks import WINGS, title
from dlplay.records import Summary
from dlplay.runs.snapshot import Curve, Snapshot
from dlplay.views.decimation import Decimator, Points
from dlplay.views.palette import style
from dlplay.views.words import describe

Header = dict[str, Any]
_PLAIN = ("state", "step", "steps", "epoch", "epochs", "message")


def compose(snapshot: Snapshot) -> tuple[Header, bytes]:
    """Turn a snapshot into the header and the buffer of one frame."""
    return Composer().compose(snapshot)


class Composer:
    """Composes the frames of one run after the other, each from what is new in it."""

    def __init__(self) -> None:
        self._decimators: dict[tuple[str, str], Decimator] = {}

    def compose(self, snapshot: Snapshot) -> tuple[Header, bytes]:
        """Turn the newest snapshot into a frame."""
        buffer = _Buffer()
        header: Header = {name: getattr(snapshot, name) for name in _PLAIN}
        for name in ("learning_rate", "elapsed", "remaining"):
            header[name] = _finite(getattr(snapshot, name))
        header["words"] = describe(snapshot)
        header["wings"] = [
            self._wing(name, curve, buffer) for name, curve in snapshot.curves.items()
        ]
        header["rows"] = [
            [_cell(name, layer, looks, buffer) for name, layer, looks in row]
            for row in _rows(snapshot)
        ]
        return header, buffer.tobytes()

    def _wing(self, name: str, curve: Curve, buffer: "_Buffer") -> Header:
        series = {
            "loss": self._series(name, "loss", curve.loss, None, buffer),
            "accuracy": self._series(name, "accuracy", curve.accuracy, None, buffer),
            "test_loss": self._series(name, "test_loss", curve.test_loss, curve.test_steps, buffer),
            "test_accuracy": self._series(
                name, "test_accuracy", curve.test_accuracy, curve.test_steps, buffer
            ),
        }
        step_seconds = _finite(curve.seconds / len(curve.loss)) if len(curve.loss) else None
        return {
            "name": name,
            "title": _title(name),
            "style": style(name),
            "step_seconds": step_seconds,
            "series": series,
        }

    def _series(
        self, wing: str, what: str, values: np.ndarray, steps: np.ndarray | None, buffer: "_Buffer"
    ) -> Header:
        decimator = self._decimators.setdefault((wing, what), Decimator())
        points = decimator.update(values)
        band = what == "loss"
        at = buffer.add(_places(points, steps), points.mean)
        if band:
            buffer.add(points.low, points.high)
        return {"at": at, "n": len(points.mean), "band": band, "bad": _bad(points, values, steps)}


class _Buffer:
    """Arrays and numbers, one after the other, as float32."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray | list[float]] = []
        self._size = 0

    def add(self, *parts: np.ndarray | list[float]) -> int:
        """Append the parts and say where the first of them begins."""
        at = self._size
        for part in parts:
            self._parts.append(part)
            self._size += len(part)
        return at

    def tobytes(self) -> bytes:
        if not self._parts:
            return b""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.concatenate(self._parts, dtype="<f4", casting="unsafe").tobytes()


def _cell(wing: str, layer: str, looks: dict[str, Summary], buffer: _Buffer) -> Header:
    """One wing's layer in a row, with its summaries put into the buffer."""
    cell: Header = {"title": _title(wing), "style": style(wing), "layer": layer}
    for what in ("activation", "gradient"):
        summary = looks.get(what)
        cell[what] = None if summary is None else _put(summary, buffer)
    return cell


def _put(summary: Summary, buffer: _Buffer) -> list[int]:
    numbers = [summary.low, summary.high, summary.mean, summary.std, summary.zeros]
    return [buffer.add(numbers, summary.counts), len(summary.counts)]


def _rows(snapshot: Snapshot) -> Iterator[list[tuple[str, str, dict[str, Summary]]]]:
    """The layers, row by row: side by side where all wings have as many, else each alone."""
    wings = {name: _layers(curve) for name, curve in snapshot.curves.items() if curve.summaries}
    lengths = {len(layers) for layers in wings.values()}
    columns = [[(name, *item) for item in layers.items()] for name, layers in wings.items()]
    if len(lengths) == 1:
        yield from (list(row) for row in zip(*columns, strict=True))
    else:
        yield from ([cell] for column in columns for cell in column)


def _layers(curve: Curve) -> dict[str, dict[str, Summary]]:
    layers: dict[str, dict[str, Summary]] = {}
    for summary in curve.summaries:
        layers.setdefault(summary.layer, {})[summary.what] = summary
    return layers


def _places(points: Points, steps: np.ndarray | None) -> np.ndarray:
    """The step of each point: a batch's loss is that before its update, so it begins at 0."""
    if steps is None or not len(points.index):
        return points.index
    return steps[np.ceil(points.index).astype(np.intp)]


def _bad(points: Points, values: np.ndarray, steps: np.ndarray | None) -> list[Any] | None:
    if points.bad < 0:
        return None
    step = points.bad if steps is None else int(steps[points.bad])
    return [step, "NaN" if math.isnan(values[points.bad]) else "infinite"]


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _title(wing: str) -> str:
    return title(wing) if wing in WINGS else wing
