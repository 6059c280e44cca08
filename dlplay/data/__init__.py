"""Data sets as NumPy arrays, and the fixed order of their batches; no framework is imported.

Only a download goes through a framework, when it is asked for: ``dlplay.data.downloads``.
"""

from pathlib import Path

from dlplay.data import digits as _digits
from dlplay.data import downloads, toys
from dlplay.data.dataset import Dataset
from dlplay.data.order import batches
from dlplay.errors import SettingError
from dlplay.settings import DATASETS, Seed

__all__ = ["Dataset", "batches", "load"]


def load(name: str, seed: int = 0, folder: str | Path | None = None) -> Dataset:
    """Load a data set by its name; the first three need no network.

    Parameters
    ----------
    name
        ``"digits"`` (8x8x1, 1,437 + 360), ``"spirals"`` and ``"moons"`` (points, 800 + 200),
        ``"mnist"`` and ``"fashion-mnist"`` (28x28x1, 60,000 + 10,000), ``"cifar10"``
        (32x32x3, 50,000 + 10,000); the last three are downloaded once and kept.
    seed
        Draws the points of ``"spirals"`` and ``"moons"``. The splits of the others are fixed.
    folder
        Where downloads are kept; ``None`` means ``dlplay.data.downloads.cache_folder()``.

    Raises
    ------
    SettingError
        For a name that is no data set, or a seed that is no whole number from 0 to 2**32 - 1.
    DataError
        For data that cannot be found, downloaded or trusted; the message says what to do.
    """
    if name not in DATASETS:
        raise SettingError(f"There is no data set {name!r}: choose one of {', '.join(DATASETS)}.")
    if name == "digits":
        return _digits.digits()
    if name in ("spirals", "moons"):
        return getattr(toys, name)(Seed(value=seed).value)
    return downloads.download(name, None if folder is None else Path(folder))
