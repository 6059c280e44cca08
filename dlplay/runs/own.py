"""What a reader brings: models and data of their own, checked before a run begins."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dlplay.data import Dataset
from dlplay.errors import ModelError, SettingError
from dlplay.frameworks import WINGS
from dlplay.settings import Run

MOST_CLASSES = 2**20


def as_run(settings: Any) -> Run:
    """The settings as they are, the default ones for None; raises SettingError otherwise."""
    if settings is None:
        return Run()
    if not isinstance(settings, Run):
        raise SettingError(
            f"settings must be a dlplay.settings.Run(...), and this is a {type(settings).__name__}:"
            " models and data of your own are given as models=(...) and data=(...)."
        )
    return settings


def as_models(models: Any) -> dict[str, Any] | None:
    """Models by wing; None where there are none.

    Raises
    ------
    ModelError
        For anything but a mapping from wings' names.
    """
    if models is None:
        return None
    if not isinstance(models, Mapping) or not set(models) or set(models) - set(WINGS):
        raise ModelError(
            'models must be {"pytorch": net, "keras": model}, or a dict with one of the two.'
        )
    return dict(models)


def as_dataset(data: Any) -> Dataset | None:
    """A Dataset as it is, or one made of ``(x, y)``: every fifth example becomes a test example.

    Raises
    ------
    SettingError
        For anything else.
    """
    if data is None or isinstance(data, Dataset):
        return data
    try:
        x, y = (np.asarray(part) for part in data)
    except (TypeError, ValueError, RuntimeError):
        raise SettingError(
            "data must be a dlplay.data.Dataset or a pair (x, y) of arrays."
        ) from None
    if problem := _problem(x, y):
        raise SettingError(
            f"data is x {x.shape} {x.dtype} and y {y.shape} {y.dtype}, but {problem}."
        )
    test = np.arange(len(x)) % 5 == 4
    x = x.astype(np.float32) if x.dtype.kind != "f" else x
    classes = tuple(str(number) for number in range(int(y.max()) + 1))
    return Dataset("your own", x[~test], y[~test], x[test], y[test], classes)


def _problem(x: np.ndarray, y: np.ndarray) -> str:
    """What is wrong with the data; empty where nothing is."""
    if x.dtype.kind not in "fiub":
        return "x must be numbers"
    if x.ndim < 2 or not x[0:1].size:
        return "x must have an axis of examples and at least one of their features"
    if y.shape != x.shape[:1] or y.dtype.kind not in "iu":
        return "y must be one whole number, the class, for each example"
    if len(x) < 5:
        return "at least five examples are needed"
    if y.min() < 0 or y.max() >= MOST_CLASSES:
        return f"y goes from {y.min()} to {y.max()}: number the classes from 0"
    finite = np.isfinite(x).reshape(len(x), -1).all(axis=1)
    if not finite.all():
        return f"x holds values that are not finite, first in example {int(finite.argmin())}"
    return ""
