"""What the publishers of the data sets offer, a few images each, and a server that offers it."""

import gzip
import hashlib
import http.server
import importlib
import io
import pickle
import tarfile
import threading
import time
from contextlib import contextmanager

import numpy as np

from dlplay.data import downloads

SETS = ("mnist", "fashion-mnist", "cifar10")
DRAWN = np.random.default_rng(0)
GREY = [DRAWN.integers(0, 256, (count, 28, 28), np.uint8) for count in (20, 10)]
COLOUR = [DRAWN.integers(0, 256, (count, 32, 32, 3), np.uint8) for count in (20, 10)]
LABELS = [np.arange(count, dtype=np.uint8) % 10 for count in (20, 10)]
IDX = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def idx(array):
    """The format of MNIST's authors, compressed."""
    sizes = np.array(array.shape, ">u4").tobytes()
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


def npz(images, labels):
    file = io.BytesIO()
    np.savez(file, x_train=images[0], y_train=labels[0], x_test=images[1], y_test=labels[1])
    return file.getvalue()


def cifar():
    """The archive, and the MD5 of each file in it, which torchvision verifies too."""
    parts = [*np.split(COLOUR[0], 5), COLOUR[1]], [*np.split(LABELS[0], 5), LABELS[1]]
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    members = {"batches.meta": pickle.dumps({"label_names": list(downloads._THINGS.split(","))})}
    for name, images, labels in zip(names, *parts, strict=True):
        rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        members[name] = pickle.dumps({"data": rows, "labels": labels.tolist()})
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue(), {name: md5(content) for name, content in members.items()}


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


ARCHIVE, MEMBERS = cifar()
FILES = dict(zip(IDX, map(idx, (GREY[0], LABELS[0], GREY[1], LABELS[1])), strict=True))
FILES |= {"mnist.npz": npz(GREY, LABELS), "cifar-10-python.tar.gz": ARCHIVE}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        content = FILES[self.path.rpartition("/")[2]]
        if self.server.mode == "missing":
            self.send_error(404)
            return
        if self.server.mode == "silent":
            time.sleep(1)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.mode == "truncated":
            content = content[: len(content) // 2]
        elif self.server.mode == "corrupted":
            content = content[:-1] + bytes([content[-1] ^ 1])
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@contextmanager
def serve():
    """A server on this machine; set its ``mode``, read its ``requests``."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.mode, running.requests = "healthy", []
        running.url = f"http://127.0.0.1:{running.server_port}/"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def point(wing, url, monkeypatch):
    """Point one wing's downloader at a server, checksums included."""
    room = importlib.import_module(f"dlplay.{wing}.datasets")
    {"pytorch": _point_torchvision, "keras": _point_keras}[wing](room, url, monkeypatch)


def _point_torchvision(room, url, monkeypatch):
    for kind in (room.datasets.MNIST, room.datasets.FashionMNIST):
        monkeypatch.setattr(kind, "mirrors", [url])
        monkeypatch.setattr(kind, "resources", [(name, md5(FILES[name])) for name in IDX])
    kind = room.datasets.CIFAR10
    listed = [[name, sum_] for name, sum_ in MEMBERS.items() if "batch_" in name]
    monkeypatch.setattr(kind, "url", url + "cifar-10-python.tar.gz")
    monkeypatch.setattr(kind, "tgz_md5", md5(ARCHIVE))
    monkeypatch.setattr(kind, "train_list", listed)
    monkeypatch.setattr(kind, "test_list", [["test_batch", MEMBERS["test_batch"]]])
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": MEMBERS["batches.meta"]})


def _point_keras(room, url, monkeypatch):
    names = {"mnist": ["mnist.npz"], "fashion-mnist": IDX, "cifar10": ["cifar-10-python.tar.gz"]}
    files = {
        name: {url + file: hashlib.sha256(FILES[file]).hexdigest() for file in listed}
        for name, listed in names.items()
    }
    monkeypatch.setattr(room, "_FILES", files)
