"""Downloads data sets with ``keras.utils.get_file``: a progress bar, and a checksum for each file.

``keras.datasets.*.load_data()`` would keep the files in Keras's own folder, and would take
Fashion-MNIST without a checksum; so the addresses and sums stand here, Fashion-MNIST's as its
authors publish them. The other wing's twin is ``dlplay/pytorch/datasets.py``.
"""

import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from keras.utils import get_file
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_KERAS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_ZALANDO = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_TORONTO = "https://www.cs.toronto.edu/~kriz/"

#: Address and checksum (SHA-256 or MD5) of each file of each set.
_FILES = {
    "mnist": {
        _KERAS + "mnist.npz": "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    },
    "fashion-mnist": {
        _ZALANDO + "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        _ZALANDO + "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        _ZALANDO + "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        _ZALANDO + "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    "cifar10": {
        _TORONTO + "cifar-10-python.tar.gz": (
            "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
        ),
    },
}


def fetch(name: str, folder: Path) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """Download a data set into a folder and read it: ``x_train, y_train, x_test, y_test``.

    Images are uint8, shape (N, height, width) or (N, height, width, channels); labels are uint8,
    shape (N,).

    Raises
    ------
    Exception
        Whatever Keras raises where a file cannot be had, or its checksum is wrong.
    """
    unpack = name == "cifar10"
    paths = [
        Path(get_file(None, url, file_hash=sum_, extract=unpack, cache_subdir="", cache_dir=folder))
        for url, sum_ in _FILES[name].items()
    ]
    if name == "mnist":
        return _read_npz(paths[0])
    if name == "fashion-mnist":
        images, labels, test_images, test_labels = map(_read_idx, paths)
        return images, labels, test_images, test_labels
    return _read_cifar(paths[0])


def _read_npz(path: Path) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"]


def _read_idx(path: Path) -> Bytes:
    """The format of MNIST's authors: two zeros, type, rank, then the sizes, big-endian."""
    content = gzip.decompress(path.read_bytes())
    rank = content[3]
    shape = np.frombuffer(content, ">u4", count=rank, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(tuple(shape))


def _read_cifar(folder: Path) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    files = sorted(folder.glob("*/data_batch_*"))
    train = [_read_batch(file) for file in files]
    images = np.concatenate([batch[0] for batch in train])
    labels = np.concatenate([batch[1] for batch in train])
    return images, labels, *_read_batch(next(folder.glob("*/test_batch")))


def _read_batch(path: Path) -> tuple[Bytes, Bytes]:
    with path.open("rb") as file:
        batch: dict[str, Any] = pickle.load(file, encoding="latin1")  # its checksum was verified
    images = np.asarray(batch["data"], np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, np.asarray(batch["labels"], np.uint8)
