"""The one place that knows how two frameworks share a process.

**The crash.** On Linux, PyTorch imports triton lazily, when the first optimizer is made.
TensorFlow (from 2.20) loads itself with global symbols, its LLVM among them; triton's library,
loaded later, binds to that LLVM, and the process ends with a segmentation fault
(tensorflow/tensorflow#124205). It is cured in either of two ways:

- triton is loaded *before* TensorFlow: done when TensorFlow is imported and PyTorch is there;
- triton is *kept from loading*: done when TensorFlow came first. What is then missing is
  ``torch.compile`` for NVIDIA GPUs; importing torch before tensorflow brings it back.

**The environment.** TensorFlow reads some variables only while it is imported, so they are set
just before; a value that the user has set always wins.

Nothing here imports PyTorch, Keras or TensorFlow, and nothing costs time before one of them
is imported. ``tests/test_frameworks.py`` tries every order, and shows that without the guard
the crash is real.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from dlplay.errors import DlplayError, MissingFrameworkError

WINGS = ("pytorch", "keras")

#: What TensorFlow and Keras read while they are imported, and why we set it.
ENVIRONMENT = {
    "KERAS_BACKEND": "tensorflow",  # the Keras wing compiles its step with tf.function
    "TF_CPP_MIN_LOG_LEVEL": "2",  # a page of notices would hide what a notebook shows
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # else TensorFlow takes the whole GPU from PyTorch
}

_NEEDS = {"pytorch": ("torch",), "keras": ("keras", "tensorflow")}
#: The command that gets a framework.
INSTALL = {"pytorch": "pip install torch torchvision", "keras": "pip install keras tensorflow"}
_TITLE = {"pytorch": "PyTorch", "keras": "Keras"}


class _ImportGuard(MetaPathFinder):
    """Finds no module itself; it acts just before a framework is found by the others."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "tensorflow":
            for name, value in ENVIRONMENT.items():
                os.environ.setdefault(name, value)
            if "torch" in sys.modules:
                _load_triton()
        elif fullname == "keras":
            os.environ.setdefault("KERAS_BACKEND", ENVIRONMENT["KERAS_BACKEND"])
        elif fullname == "torch" and "tensorflow" in sys.modules:
            _keep_triton_from_loading()
        return None


def guard() -> None:
    """Make every import order of the two frameworks safe from here on.

    Called by ``import dlplay``. Cheap, and of no effect when called again.
    """
    if not any(isinstance(finder, _ImportGuard) for finder in sys.meta_path):
        sys.meta_path.insert(0, _ImportGuard())
    if "tensorflow" in sys.modules and "torch" in sys.modules:
        _keep_triton_from_loading()


def _load_triton() -> None:
    try:
        importlib.import_module("triton")
    except ImportError:
        pass  # no triton, no crash: CPU builds, macOS and Windows have none


def _keep_triton_from_loading() -> None:
    sys.modules.setdefault("triton", None)  # type: ignore[arg-type]


def installed(wing: str) -> bool:
    """Say whether the wing's framework is installed, without importing it."""
    return all(find_spec(name) is not None for name in _NEEDS[wing])


def title(wing: str) -> str:
    """The framework's own spelling of its name: ``"PyTorch"`` or ``"Keras"``."""
    return _TITLE[wing]


def load_wing(wing: str) -> ModuleType:
    """Import ``dlplay.pytorch`` or ``dlplay.keras``, each with its framework.

    Raises
    ------
    MissingFrameworkError
        Where the framework is not installed; the message says how to get it.
    DlplayError
        For a name that is no wing, or a Keras that runs on another backend than TensorFlow.
    """
    if wing not in WINGS:
        raise DlplayError(f"There is no wing {wing!r}: choose one of {', '.join(WINGS)}.")
    if not installed(wing):
        raise MissingFrameworkError(
            f"{_TITLE[wing]} is not installed: install it with `{INSTALL[wing]}`,"
            " or use the other framework alone."
        )
    return importlib.import_module(f"dlplay.{wing}")
