"""A real ``dlplay lab`` for tests: started, reached over HTTP, ended as by Ctrl-C."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/doc/tree/(\S+)\?token=(\w{20,})")


@dataclass
class Lab:
    """The process, the address that it printed, and all that it has printed so far."""

    process: subprocess.Popen[str]
    address: str
    port: int
    notebook: str
    token: str
    output: list[str]

    def interrupt(self) -> int:
        """Press Ctrl-C, once, and give back the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=20)


def isolated(home: Path) -> dict[str, str]:
    """The environment, with everything that Jupyter would write under ``home`` instead."""
    places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    jupyter = {f"JUPYTER_{place}": str(home / place.lower()) for place in places}
    lab = {f"JUPYTERLAB_{place}_DIR": str(home / place) for place in ("SETTINGS", "WORKSPACES")}
    return {**os.environ, **jupyter, **lab, "IPYTHONDIR": str(home / "ipython")}


@contextmanager
def running(
    home: Path,
    *options: str,
    command: Sequence[str] = (sys.executable, "-m", "dlplay"),
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[Lab]:
    """Run ``dlplay lab --no-browser`` with more options until the block ends."""
    process = subprocess.Popen(
        [*command, "lab", "--no-browser", *options],
        env={**isolated(home), **(environment or {})},
        cwd=folder or home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = threading.Timer(60, process.kill)
    deadline.start()
    try:
        yield _wait_for_address(process, deadline)
    finally:
        deadline.cancel()
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Let the server end its kernels; if it does not within ten seconds, end it alone."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for_port(port: int) -> None:
    """Jupyter prints the address a moment before it listens."""
    end = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _wait_for_address(process: subprocess.Popen[str], deadline: threading.Timer) -> Lab:
    output: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        output.append(line)
        if found := ADDRESS.search(line):
            deadline.cancel()
            threading.Thread(target=output.extend, args=[process.stdout], daemon=True).start()
            _wait_for_port(int(found[1]))
            return Lab(process, found[0], int(found[1]), found[2], found[3], output)
    raise AssertionError("dlplay lab ended without an address:\n" + "".join(output))
