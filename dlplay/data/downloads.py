"""Data sets that are downloaded once, through a framework's own downloader, and then kept.

The downloader (torchvision's, or Keras's where PyTorch is missing) works in a temporary folder
and verifies the publisher's checksums. Only then are the arrays written as one file and moved
to their place in a single step, so nothing half done is ever there to be trusted. Reading that
file needs no framework and checks its CRC-32, which every zip file carries.
"""

import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from dlplay import frameworks
from dlplay.data.dataset import Bytes, Dataset, from_bytes
from dlplay.data.trouble import explain
from dlplay.errors import DataError, DlplayError

Arrays = tuple[Bytes, Bytes, Bytes, Bytes]

TIME_LIMIT = 30.0  # seconds that a server may be silent; without it a bad Wi-Fi hangs for ever
_ABANDONED = 24 * 3600  # seconds after which a temporary folder belongs to no living download
_KEYS = ("x_train", "y_train", "x_test", "y_test")
_one_at_a_time = threading.Lock()


class Source(NamedTuple):
    """What a set costs, in megabytes, and the names of its classes in the order of its labels."""

    download: int
    disk: int  # at the peak, while it is unpacked
    classes: tuple[str, ...]


_CLOTHES = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
_THINGS = "airplane,automobile,bird,cat,deer,dog,frog,horse,ship,truck"

#: Sources: LeCun et al. 1998 (MNIST), Xiao et al. 2017 (Fashion-MNIST), Krizhevsky 2009.
SOURCES = {
    "mnist": Source(12, 130, tuple("0123456789")),
    "fashion-mnist": Source(31, 150, tuple(_CLOTHES.split(","))),
    "cifar10": Source(171, 550, tuple(_THINGS.split(","))),
}


def cache_folder() -> Path:
    """Where downloads are kept: ``$DLPLAY_CACHE``, or the user's own cache on this platform."""
    if chosen := os.environ.get("DLPLAY_CACHE"):
        return Path(chosen).expanduser()
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "dlplay"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "dlplay" / "cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "dlplay"


def download(name: str, folder: Path | None = None) -> Dataset:
    """Give a set of ``SOURCES`` in its official split, downloaded if it is not kept yet.

    Images become float32 from 0 to 1, channels last. One download at a time; a second thread
    waits for the first and then reads what it kept.

    Raises
    ------
    DataError
        Where the set can be neither read nor downloaded: one sentence that says what to do.
    """
    folder = cache_folder() if folder is None else folder.expanduser()
    path = folder / f"{name}.npz"
    with _one_at_a_time:
        arrays = _read(path)
        if arrays is None:
            arrays = _fetch(name, path)
    return from_bytes(name, arrays[:2], arrays[2:], SOURCES[name].classes)


def _read(path: Path) -> Arrays | None:
    """Read what was kept; None where there is nothing, or nothing that can be trusted."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as kept:
            if kept.zip.testzip() is not None:
                raise zipfile.BadZipFile
            x_train, y_train, x_test, y_test = (kept[key] for key in _KEYS)
        return x_train, y_train, x_test, y_test
    except PermissionError as error:
        raise DataError(explain(error, path.stem, path.parent, SOURCES[path.stem].disk)) from error
    except MemoryError:
        raise
    except Exception:  # one flipped bit can raise nearly anything in zipfile and NumPy
        print(f"The kept file {path} is damaged, so it is downloaded again.")
        return None


def _fetch(name: str, path: Path) -> Arrays:
    wing = _downloader(name)
    print(f"Downloading {name} ({SOURCES[name].download} MB, once) to {path.parent}", flush=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        with (
            tempfile.TemporaryDirectory(prefix=".download-", dir=path.parent) as workplace,
            _time_limit(TIME_LIMIT),
        ):
            arrays: Arrays = wing.fetch(name, Path(workplace))
            _keep(arrays, Path(workplace) / "draft.npz", path)
        return arrays
    except Exception as error:  # each downloader has its own, Keras even a bare Exception
        raise DataError(explain(error, name, path.parent, SOURCES[name].disk)) from error


def _downloader(name: str) -> ModuleType:
    """The first wing whose framework can download: ``dlplay.pytorch.datasets`` or Keras's."""
    reasons = []
    for wing in frameworks.WINGS:
        try:
            frameworks.load_wing(wing)
            return import_module(f"dlplay.{wing}.datasets")
        except (ImportError, RuntimeError, DlplayError) as error:  # RuntimeError: a torchvision
            reasons.append(str(error))  # that was built for another torch
    raise DataError(
        f"{name} is downloaded through torchvision or Keras, and neither can be used"
        f" ({' '.join(reasons)}): install one with `pip install torch torchvision`."
    )


def _keep(arrays: Arrays, draft: Path, path: Path) -> None:
    np.savez(draft, **dict(zip(_KEYS, arrays, strict=True)))  # type: ignore[arg-type]
    try:
        os.replace(draft, path)
    except PermissionError:
        if not path.exists():  # on Windows: another process has just kept it, and reads it
            raise


def _sweep(folder: Path) -> None:
    """Remove what a download left whose process was killed."""
    for left in folder.glob(".download-*"):
        try:
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        except FileNotFoundError:
            pass  # another process was faster


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Let no new socket of this process wait for ever: neither downloader has a limit to set."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
