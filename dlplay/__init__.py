"""The same network in PyTorch and in Keras, side by side and live.

``import dlplay`` imports neither framework and costs next to nothing; each public name below
is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dlplay import frameworks

if TYPE_CHECKING:
    from dlplay import checks, labs, settings
    from dlplay.data import load
    from dlplay.runs import Training, train
    from dlplay.twins import twins

__version__ = "0.1.0"
__all__ = ["Training", "checks", "labs", "load", "settings", "train", "twins"]

_HOME = {
    "Training": "dlplay.runs",
    "load": "dlplay.data",
    "train": "dlplay.runs",
    "twins": "dlplay.twins",
}
_ROOMS = {"checks", "labs", "settings"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"dlplay.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'dlplay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


frameworks.guard()
