"""The handwritten digits that travel with dlplay (``data/README.md`` tells their source)."""

import hashlib
import io

import numpy as np

from dlplay import resources
from dlplay.data.dataset import Bytes, Dataset, from_bytes
from dlplay.errors import DataError

SHA256 = "1dc781c8fe699ce12f056a510e6dd518c795428f089effc1a3e2eec0f3ece269"
TRAIN, TEST = 1437, 360
_INK = 16  # the largest pixel value


def digits() -> Dataset:
    """1,797 handwritten digits of 8x8 pixels, split once and for all into 1,437 and 360.

    The split comes from ``numpy.random.RandomState``, whose stream NumPy has frozen (NEP 19), so
    it is the same everywhere and for ever. Source: Alpaydin and Kaynak 1998, UCI Machine
    Learning Repository, doi:10.24432/C50P49.

    Raises
    ------
    DataError
        Where the file is missing, or is not the one whose checksum stands here.
    """
    images, labels = _read()
    order = np.random.RandomState(0).permutation(len(images))
    train, test = order[:TRAIN], order[TRAIN:]
    classes = tuple(str(digit) for digit in range(10))
    parts = (images[train], labels[train]), (images[test], labels[test])
    return from_bytes("digits", *parts, classes, white=_INK)


def _read() -> tuple[Bytes, Bytes]:
    try:
        path = resources.folder("data") / "digits.npz"
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"The digits cannot be read ({error}): install dlplay again with"
            " `pip install --force-reinstall dlplay`."
        ) from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise DataError(
            f"{path} is damaged or was changed (its SHA-256 is not the expected one): bring it"
            " back with `git checkout data/digits.npz`, or install dlplay again."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return arrays["images"], arrays["labels"]
