"""The data sets that need no network, and the order of their batches."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dlplay
from dlplay import resources
from dlplay.data import batches, digits, toys
from dlplay.errors import DataError, SettingError
from dlplay.settings import DATASETS

# Written down once: whoever changes the split changes every figure that was ever measured on it.
FIRST_TRAINING_LABELS = [2, 8, 2, 6, 6, 7, 1, 9, 8, 5, 2, 8]
# The same on every platform, or two machines train differently.
FIRST_BATCH = [82, 36, 20, 5, 93, 16, 94, 52]

OFFLINE = {"digits": (8, 8, 1), "spirals": (2,), "moons": (2,)}


@pytest.mark.parametrize("name", OFFLINE)
def test_every_set_has_the_promised_form(name):
    data = dlplay.load(name)
    assert data.name == name
    assert data.shape == OFFLINE[name]
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        assert x.dtype == np.float32
        assert y.dtype == np.int64
        assert x.shape == (len(y), *data.shape)
        assert np.isfinite(x).all()
        assert set(y) == set(range(len(data.classes)))
    assert name in repr(data)
    assert str(len(data.x_train)) in repr(data)


def test_digits_are_the_real_ones_split_once_and_for_all():
    data = dlplay.load("digits")
    assert (len(data.x_train), len(data.x_test)) == (1437, 360)
    pixels, labels = (
        np.concatenate([data.x_train, data.x_test]),
        np.append(data.y_train, data.y_test),
    )
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert set(np.unique(pixels * 16)) == set(range(17))
    assert data.classes == tuple("0123456789")
    assert data.y_train[:12].tolist() == FIRST_TRAINING_LABELS
    assert np.array_equal(data.x_train, dlplay.load("digits", seed=7).x_train)


def test_a_nearest_neighbour_reads_the_digits():
    data = dlplay.load("digits")
    train, test = (x.reshape(len(x), -1) for x in (data.x_train, data.x_test))
    distance = (test**2).sum(1)[:, None] - 2 * test @ train.T + (train**2).sum(1)
    assert (data.y_train[distance.argmin(axis=1)] == data.y_test).mean() > 0.97


def test_the_checksum_stands_in_the_readme_too():
    folder = resources.folder("data")
    assert hashlib.sha256((folder / "digits.npz").read_bytes()).hexdigest() == digits.SHA256
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"[0-9a-f]{64}", readme) == [digits.SHA256]


def test_damaged_digits_are_not_trusted(tmp_path, monkeypatch):
    path = Path(shutil.copy(resources.folder("data") / "digits.npz", tmp_path))
    monkeypatch.setattr(resources, "folder", lambda name: tmp_path)
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged or was changed.*git checkout"):
        dlplay.load("digits")
    path.unlink()
    with pytest.raises(DataError, match="install dlplay again"):
        dlplay.load("digits")


@pytest.mark.parametrize("make", [toys.spirals, toys.moons])
def test_toys_are_fixed_by_their_seed_and_balanced(make):
    one, same, other = make(3), make(3), make(4)
    assert np.array_equal(one.x_train, same.x_train)
    assert np.array_equal(one.y_test, same.y_test)
    assert not np.array_equal(one.x_train, other.x_train)
    assert (len(one.x_train), len(one.x_test)) == (800, 200)
    counts = np.bincount(np.append(one.y_train, one.y_test))
    assert counts.max() - counts.min() <= 1
    assert np.abs(one.x_train).max() < 1.3


def test_unwinding_the_spirals_separates_them():
    data = dlplay.load("spirals")
    x, y = data.x_test.T
    angle = np.arctan2(y, x) / (2 * np.pi) - toys.TURNS * np.hypot(x, y)
    guess = np.round(angle * toys.ARMS).astype(int) % toys.ARMS
    assert (guess == data.y_test).mean() > 0.97


def test_cubic_features_separate_the_moons_and_a_line_does_not():
    data = dlplay.load("moons")
    assert _least_squares(data, degree=3) > 0.97
    assert _least_squares(data, degree=1) < 0.93


def _least_squares(data, degree):
    def features(points):
        x, y = points.T.astype(float)
        powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
        return np.stack([x**i * y**j for i, j in powers], axis=1)

    weights = np.linalg.lstsq(features(data.x_train), 2.0 * data.y_train - 1, rcond=None)[0]
    return ((features(data.x_test) @ weights > 0) == data.y_test).mean()


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(SettingError) as caught:
        dlplay.load("digit")
    assert all(name in str(caught.value) for name in ("'digit'", *DATASETS))


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True, 2**32])
def test_a_wrong_seed_gets_one_sentence(seed):
    with pytest.raises(SettingError, match="must be a whole number"):
        dlplay.load("spirals", seed=seed)


@pytest.mark.parametrize(("count", "size"), [(10, 3), (10, 10), (10, 1), (1437, 32)])
def test_an_epoch_is_a_permutation_with_a_smaller_last_batch(count, size):
    parts = list(batches(count, size, seed=0, epoch=0))
    assert all(part.dtype == np.int64 for part in parts)
    assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert len(parts[-1]) == (count % size or size)
    assert sorted(np.concatenate(parts)) == list(range(count))


def test_the_order_is_fixed_by_seed_and_epoch():
    def order(seed, epoch):
        return np.concatenate(list(batches(100, 8, seed, epoch))).tolist()

    assert order(0, 0) == order(0, 0)
    orders = [order(seed, epoch) for seed in range(3) for epoch in range(3)]
    assert len({tuple(one) for one in orders}) == 9
    assert order(0, 0)[:8] == FIRST_BATCH


@pytest.mark.parametrize("size", [0, -1, 11])
def test_a_batch_larger_than_the_set_gets_one_sentence_at_the_call(size):
    with pytest.raises(SettingError, match=f"batch size is {size}.*10 training.*from 1 to 10"):
        batches(10, size, seed=0, epoch=0)


def test_data_imports_neither_framework_nor_any_helper_of_scikit_learn():
    heavy = {"torch", "torchvision", "keras", "tensorflow", "sklearn", "pandas", "scipy"}
    code = f"import dlplay, sys; dlplay.load('digits'); print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
