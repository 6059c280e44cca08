"""A training in words: for readers without the drawing, and for those who listen to it."""

import math

from dlplay.frameworks import WINGS, title
from dlplay.runs.snapshot import Curve, Snapshot


def describe(snapshot: Snapshot) -> str:
    """Say in one line where the training is and how each framework does."""
    parts = [_progress(snapshot)]
    parts += [_wing(name, curve) for name, curve in snapshot.curves.items() if len(curve.loss)]
    if snapshot.message:
        parts.append(snapshot.message)
    return "; ".join(" ".join(part.rstrip(".").split()) for part in parts) + "."


def number(value: float) -> str:
    """A number with three significant digits."""
    if math.isnan(value):
        return "not a number"
    return "infinite" if math.isinf(value) else f"{value:.3g}"


def share(value: float) -> str:
    """A share in per cent."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else number(value)


def _progress(snapshot: Snapshot) -> str:
    if snapshot.state == "ready" and not snapshot.step:
        return "Training ready to start"
    return f"Training {snapshot.state}, step {snapshot.step} of {snapshot.steps}"


def _wing(name: str, curve: Curve) -> str:
    said = f"{title(name) if name in WINGS else name}: loss {number(float(curve.loss[-1]))}"
    if len(curve.accuracy):
        said += f", training accuracy {share(float(curve.accuracy[-1]))}"
    if len(curve.test_accuracy):
        said += f", test accuracy {share(float(curve.test_accuracy[-1]))}"
    return said
