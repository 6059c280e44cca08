"""Downloads, through both frameworks' downloaders, from a real server on this machine.

The server offers sets in the publishers' own formats, a few images each; the downloaders are
pointed at it, checksums included, and everything between is what a user runs.
"""

import errno
import importlib
import inspect
import io
import re
import socket
import threading
import urllib.request

import numpy as np
import pytest
from publishers import COLOUR, GREY, LABELS, SETS, point, serve

import dlplay
from dlplay import frameworks
from dlplay.data import downloads, trouble
from dlplay.errors import DataError, MissingFrameworkError

WINGS = frameworks.WINGS
CASES = [(wing, name) for wing in WINGS for name in SETS]


@pytest.fixture
def server():
    with serve() as running:
        yield running


@pytest.fixture
def aim(server, monkeypatch):
    """Point one wing's downloader at the server, and leave the other wing out."""

    def aim_at(wing):
        point(wing, server.url, monkeypatch)
        monkeypatch.setattr(frameworks, "installed", lambda name: name == wing)

    return aim_at


def assert_nothing_is_left(folder):
    assert not folder.exists() or list(folder.iterdir()) == []


def sentence(caught):
    """The message, after a look at its form: one sentence, on one line."""
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert ". " not in text
    return text


@pytest.mark.parametrize(("wing", "name"), CASES)
def test_a_set_is_downloaded_once_and_then_read_offline(wing, name, server, aim, tmp_path, capsys):
    aim(wing)
    first = dlplay.load(name, folder=tmp_path / "new" / "cache")
    said = capsys.readouterr()
    assert f"Downloading {name}" in said.out
    assert re.search(r"100\.0%|100%|━━━", said.out + said.err)  # the framework's progress bar
    images = COLOUR if name == "cifar10" else [grey[..., None] for grey in GREY]
    for x, y, image, label in (
        (first.x_train, first.y_train, images[0], LABELS[0]),
        (first.x_test, first.y_test, images[1], LABELS[1]),
    ):
        assert x.dtype == np.float32
        assert y.dtype == np.int64
        assert np.array_equal(x, image.astype(np.float32) / 255)
        assert np.array_equal(y, label)
    assert len(first.classes) == 10
    asked = len(server.requests)
    server.mode = "missing"
    again = dlplay.load(name, folder=tmp_path / "new" / "cache")
    assert np.array_equal(again.x_train, first.x_train)
    assert len(server.requests) == asked
    assert [file.name for file in (tmp_path / "new" / "cache").iterdir()] == [f"{name}.npz"]


@pytest.mark.parametrize(("wing", "name"), CASES)
@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("missing", "HTTP Error 404.*check the connection"),
        ("truncated", "arrived damaged or incomplete.*load it again"),
        ("corrupted", "arrived damaged or incomplete.*load it again"),
    ],
)
def test_a_download_that_fails_is_said_and_leaves_nothing(
    wing, name, mode, says, server, aim, tmp_path
):
    aim(wing)
    server.mode = mode
    with pytest.raises(DataError, match=f"{name}.*{says}") as caught:
        dlplay.load(name, folder=tmp_path)
    sentence(caught)
    assert_nothing_is_left(tmp_path)
    server.mode = "healthy"
    assert len(dlplay.load(name, folder=tmp_path).x_train) == 20


@pytest.mark.parametrize(("wing", "name"), CASES)
def test_without_a_network_the_sentence_names_what_works_offline(wing, name, server, aim, tmp_path):
    aim(wing)
    server.shutdown()
    server.server_close()
    with pytest.raises(DataError, match=r"refused.*digits, spirals or moons") as caught:
        dlplay.load(name, folder=tmp_path)
    sentence(caught)
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("wing", WINGS)
def test_a_server_that_says_nothing_is_given_up(wing, server, aim, tmp_path, monkeypatch):
    aim(wing)
    server.mode = "silent"
    monkeypatch.setattr(downloads, "TIME_LIMIT", 0.2)
    with pytest.raises(DataError, match=r"timed out.*check the connection"):
        dlplay.load("mnist", folder=tmp_path)
    assert socket.getdefaulttimeout() is None


class FullFile(io.BytesIO):
    def write(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("wing", WINGS)
@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_full_disk_is_said_and_what_was_written_is_removed(
    wing, name, server, aim, tmp_path, monkeypatch
):
    aim(wing)
    with monkeypatch.context() as patch:
        utils = importlib.import_module("torchvision.datasets.utils")
        for module in (utils, urllib.request):  # where each downloader opens what it writes
            patch.setattr(module, "open", lambda *args, **kwargs: FullFile(), raising=False)
        with pytest.raises(DataError, match=r"disk is full.*free \d+ MB.*DLPLAY_CACHE") as caught:
            dlplay.load(name, folder=tmp_path)
    sentence(caught)
    assert_nothing_is_left(tmp_path)
    assert len(dlplay.load(name, folder=tmp_path).x_test) == 10


def test_a_disk_that_fills_at_the_very_end_keeps_nothing(server, aim, tmp_path, monkeypatch):
    aim("pytorch")

    def savez(path, **arrays):
        path.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", savez)
    with pytest.raises(DataError, match="disk is full"):
        dlplay.load("mnist", folder=tmp_path)
    assert_nothing_is_left(tmp_path)


def test_a_folder_that_cannot_be_used_is_said(server, aim, tmp_path):
    aim("pytorch")
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"cannot be kept in .*DLPLAY_CACHE") as caught:
        dlplay.load("mnist", folder=tmp_path / "cache")
    sentence(caught)


def test_a_blocked_connection_is_not_taken_for_a_closed_folder(tmp_path):
    closed = PermissionError(errno.EACCES, "Permission denied")
    assert "check the connection" in trouble.explain(closed, "mnist", tmp_path, 1)
    closed.filename = "mnist.npz"
    assert "DLPLAY_CACHE" in trouble.explain(closed, "mnist", tmp_path, 1)


def test_an_interrupted_download_leaves_nothing(server, aim, tmp_path, monkeypatch):
    aim("pytorch")

    def interrupted(name, folder):
        (folder / "half").write_bytes(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("dlplay.pytorch.datasets"), "fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dlplay.load("mnist", folder=tmp_path)
    assert_nothing_is_left(tmp_path)


def test_what_a_killed_download_left_is_swept_a_day_later(server, aim, tmp_path, monkeypatch):
    aim("pytorch")
    (tmp_path / ".download-old").mkdir()
    dlplay.load("mnist", folder=tmp_path)
    assert (tmp_path / ".download-old").exists()  # it may belong to a living process
    monkeypatch.setattr(downloads, "_ABANDONED", -1)
    dlplay.load("cifar10", folder=tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cifar10.npz", "mnist.npz"]


def test_a_kept_file_that_went_bad_is_found_and_replaced(server, aim, tmp_path, capsys):
    aim("pytorch")
    good = dlplay.load("mnist", folder=tmp_path)
    path = tmp_path / "mnist.npz"
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 1
    path.write_bytes(damaged)
    assert np.array_equal(dlplay.load("mnist", folder=tmp_path).x_train, good.x_train)
    assert "damaged, so it is downloaded again" in capsys.readouterr().out
    assert path.read_bytes() == content
    path.write_bytes(content[:1000])
    server.mode = "missing"
    with pytest.raises(DataError, match="404"):
        dlplay.load("mnist", folder=tmp_path)


def test_no_flipped_bit_in_a_kept_file_changes_the_data(tmp_path, capsys):
    arrays = [np.full((3, 4, 4), 7, np.uint8), np.arange(3, dtype=np.uint8)] * 2
    path = tmp_path / "mnist.npz"
    np.savez(path, **dict(zip(downloads._KEYS, arrays, strict=True)))
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        read = downloads._read(path)
        assert read is None or all(map(np.array_equal, read, arrays)), place


def test_two_threads_that_want_the_same_set_download_it_once(server, aim, tmp_path):
    aim("pytorch")
    dlplay.load("mnist", folder=tmp_path / "alone")
    asked = len(server.requests)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(dlplay.load("mnist", folder=tmp_path)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert np.array_equal(results[0].x_train, results[1].x_train)
    assert len(server.requests) == 2 * asked


def test_without_any_downloader_the_sentence_says_what_to_install(tmp_path, monkeypatch):
    def missing(wing):
        raise MissingFrameworkError(f"{wing} is not installed.")

    monkeypatch.setattr(frameworks, "load_wing", missing)
    with pytest.raises(DataError, match=r"pytorch is not installed.*pip install torch"):
        dlplay.load("mnist", folder=tmp_path)


def test_the_cache_is_where_the_user_wants_it(tmp_path, monkeypatch):
    monkeypatch.delenv("DLPLAY_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert downloads.cache_folder() == tmp_path / "dlplay"
    monkeypatch.setenv("DLPLAY_CACHE", str(tmp_path / "mine"))
    assert downloads.cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("DLPLAY_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME")
    for platform, part in (("linux", ".cache"), ("darwin", "Caches"), ("win32", "dlplay")):
        monkeypatch.setattr(downloads.sys, "platform", platform)
        assert part in downloads.cache_folder().parts


def test_the_checksums_written_down_here_are_the_publishers_own():
    ours = importlib.import_module("dlplay.keras.datasets")._FILES
    torchvision = importlib.import_module("dlplay.pytorch.datasets").datasets
    assert sorted(ours["fashion-mnist"].values()) == sorted(
        md5 for _, md5 in torchvision.FashionMNIST.resources
    )
    keras = importlib.import_module("keras.datasets")
    for name, module in (("mnist", keras.mnist), ("cifar10", keras.cifar10)):
        source = inspect.getsource(module.load_data)
        assert all(checksum in source for checksum in ours[name].values())
