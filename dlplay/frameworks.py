"""The one place that knows how two frameworks share a process.

**The crash.** On Linux, PyTorch imports triton lazily, when the first optimizer is made.
TensorFlow (from 2.20) loads itself with global symbols, its LLVM among them; triton's library,
loaded later, binds to that LLVM, and the process ends with a segmentation fault
(tensorflow/tensorflow#124205). It is cured in either of two ways:

- triton is loaded *before* TensorFlow: done when TensorFlow is imported and PyTorch is there;
- triton is *kept from loading*: done when TensorFlow came first. What is then missing is
  ``torch.compile`` for NVIDIA GPUs; importing torch before tensorflow brings it back. Who imports
  triton by hand at that point gets an ImportError that says so.

**The environment.** TensorFlow reads some variables only while it is imported, so they are set
just before; a value that the user has set always wins.

**The notices.** Before TensorFlow reads that variable, it writes some lines on what kind of
machine this is to standard error. In a notebook they look like errors, so they are left out;
whatever else it writes while it is imported is passed on.

Nothing here imports PyTorch, Keras or TensorFlow, and nothing costs time before one of them
is imported. ``tests/test_frameworks.py`` tries every order, and shows that without the guard
the crash is real.
"""

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType

from dlplay.errors import DlplayError, MissingFrameworkError

WINGS = ("pytorch", "keras")

#: What TensorFlow and Keras read while they are imported, and why we set it.
ENVIRONMENT = {
    "KERAS_BACKEND": "tensorflow",  # the Keras wing compiles its step with tf.function
    "TF_CPP_MIN_LOG_LEVEL": "3",  # notices would hide what a notebook shows; errors are raised
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # else TensorFlow takes the whole GPU from PyTorch
}

_NOTICE = re.compile(
    rb"All log messages before absl::InitializeLog|oneDNN custom operations|"
    rb"(Could not find cuda|Cannot dlopen) |binary is optimized to use|"
    rb"To enable the following instructions"
)

_NEEDS = {"pytorch": ("torch",), "keras": ("keras", "tensorflow")}
#: The command that gets a framework.
INSTALL = {"pytorch": "pip install torch torchvision", "keras": "pip install keras tensorflow"}
_TITLE = {"pytorch": "PyTorch", "keras": "Keras"}


class _Refused(Loader):
    """Stands for triton once it would crash: it can be found, as it is installed, not executed."""

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError(
            "triton would crash this process, because TensorFlow was imported before it:"
            " start again and import torch or triton first.",
            name="triton",
        )


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
            return _quiet(PathFinder.find_spec(fullname, path, target))
        if fullname == "keras":
            os.environ.setdefault("KERAS_BACKEND", ENVIRONMENT["KERAS_BACKEND"])
        elif fullname == "torch" and "tensorflow" in sys.modules:
            _keep_triton_from_loading()
        elif fullname == "triton" and "tensorflow" in sys.modules:
            return ModuleSpec(fullname, _Refused())
        return None


def guard() -> None:
    """Make every import order of the two frameworks safe from here on.

    Called by ``import dlplay``. Cheap, and of no effect when called again.
    """
    if not any(isinstance(finder, _ImportGuard) for finder in sys.meta_path):
        sys.meta_path.insert(0, _ImportGuard())
    if "tensorflow" in sys.modules and "torch" in sys.modules:
        _keep_triton_from_loading()


def _quiet(spec: ModuleSpec | None) -> ModuleSpec | None:
    """The same spec, which leaves TensorFlow's notices out while the module is executed."""
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with _without_notices():
                execute(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


@contextmanager
def _without_notices() -> Iterator[None]:
    """Hold back what native code writes to standard error, and pass on all but the notices."""
    try:
        kept = os.dup(2)
    except OSError:  # no standard error, nothing to hold back
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            held.seek(0)
            os.write(2, b"".join(line for line in held if not _NOTICE.search(line)))


def _load_triton() -> None:
    with suppress(ImportError):  # no triton, no crash: CPU builds, macOS and Windows have none
        importlib.import_module("triton")


def _keep_triton_from_loading() -> None:
    sys.modules.setdefault("triton", None)  # type: ignore[arg-type]


def installed(wing: str) -> bool:
    """Say whether the wing's framework is installed, without importing it."""
    return all(find_spec(name) is not None for name in _NEEDS[wing])


def title(wing: str) -> str:
    """The framework's own spelling of its name: ``"PyTorch"`` or ``"Keras"``."""
    return _TITLE[wing]


def missing(wing: str) -> str:
    """What to say where a framework is not installed: how to get it, and how to do without."""
    (other,) = set(WINGS) - {wing}
    return (
        f"{_TITLE[wing]} is not installed: install it with `{INSTALL[wing]}`, or train"
        f" {_TITLE[other]} alone, with wings=[{other!r}]."
    )


def keras_backend() -> str:
    """The backend that Keras runs on, or will run on once it is imported."""
    if (keras := sys.modules.get("keras")) is not None:
        return keras.backend.backend()
    return os.environ.get("KERAS_BACKEND", ENVIRONMENT["KERAS_BACKEND"])


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
        raise MissingFrameworkError(missing(wing))
    if wing == "keras" and (backend := keras_backend()) != "tensorflow":
        raise DlplayError(
            f"Keras runs on its {backend!r} backend here, but dlplay compiles Keras's steps with"
            " TensorFlow: start the kernel again with KERAS_BACKEND=tensorflow."
        )
    return importlib.import_module(f"dlplay.{wing}")
