"""How long a newcomer waits: for an import, for JupyterLab, for the first cell.

    python -m benchmarks.startup [--quick] [--check] [--json]

Imports are timed in processes of their own that take turns with a bare interpreter, whose time is
subtracted. ``dlplay lab`` is timed until the page of notebook 00 answers, with no settings of the
user's; the first cell from the start of a kernel until notebook 00 has imported both frameworks.
All files are in the system's cache by then: a first start after an installation takes longer.

Goals (``--check``): ``import dlplay`` takes at most 0.15 s more than a bare interpreter, and
loads no framework.
"""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Timer
from time import perf_counter, sleep
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks import _report
from benchmarks._notebooks import isolated, notebooks, opened, run_cells
from benchmarks._report import Goal, Report, Row, take_turns

LIMIT = 0.15  # seconds
PATIENCE = 120.0  # seconds that a server may take
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S+token=\w+")
BARE, OURS = "bare interpreter", "import dlplay"
LIGHT = {BARE: "pass", OURS: "import dlplay", "import numpy": "import numpy"}
HEAVY = {
    "import torch": "import torch",
    "import keras": "import keras",  # on the TensorFlow backend, TensorFlow included
    "import dlplay, torch, keras": "import dlplay, torch, keras",
}
FRAMEWORKS = ("torch", "torchvision", "triton", "keras", "tensorflow", "jax")
LOADED = "import json, sys, dlplay; print(json.dumps(sorted(sys.modules)))"


def measure(quick: bool) -> Report:
    """Time imports, server and kernel."""
    imports = time_imports(LIGHT, 5 if quick else 15) | time_imports(HEAVY, 1 if quick else 5)
    bare = imports.pop(BARE)
    rows = [Row(BARE, bare, "s")]
    rows += [Row(name, seconds - bare, "s", "beyond that") for name, seconds in imports.items()]
    waits = take_turns({"lab": start_lab, "cells": first_cells}, 1 if quick else 5)
    rows.append(Row("dlplay lab", median(waits["lab"]), "s", "until the page answers"))
    rows.append(Row("first cells of 00", median(waits["cells"]), "s", "kernel, and both imports"))
    return Report("Start-up", rows, goals(imports[OURS] - bare, frameworks_loaded()))


def goals(seconds: float, loaded: list[str]) -> list[Goal]:
    """What ``import dlplay`` may cost and load."""
    names = ["frameworks that import dlplay loads", *loaded]
    return [
        Goal(", ".join(names), len(loaded), 0),
        Goal("import dlplay beyond a bare interpreter", seconds, LIMIT, "s"),
    ]


def time_imports(codes: dict[str, str], turns: int) -> dict[str, float]:
    """Seconds of a process for each code: the median, after a run that is not counted."""
    contenders: dict[str, Callable[[], float]] = {
        name: partial(time_code, code) for name, code in codes.items()
    }
    take_turns(contenders, 1)
    return {name: median(times) for name, times in take_turns(contenders, turns).items()}


def time_code(code: str) -> float:
    """Seconds of a new interpreter that runs the code and ends."""
    begin = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return perf_counter() - begin


def frameworks_loaded() -> list[str]:
    """The frameworks in memory after ``import dlplay``."""
    done = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True)
    return [name for name in FRAMEWORKS if name in json.loads(done.stdout)]


def start_lab() -> float:
    """Seconds from ``dlplay lab`` to the page of the first notebook."""
    command = [sys.executable, "-m", "dlplay", "lab", "--no-browser", "--port", str(free_port())]
    with TemporaryDirectory() as home:
        begin = perf_counter()
        process = subprocess.Popen(
            [*command, "--folder", home],
            env=isolated(Path(home)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = Timer(PATIENCE, process.kill)
        deadline.start()
        try:
            await_page(process)
            return perf_counter() - begin
        finally:
            deadline.cancel()
            process.terminate()
            process.communicate(timeout=PATIENCE)


def await_page(process: "subprocess.Popen[str]") -> None:
    """Read the address that the command prints, and ask there until the answer is 200."""
    printed = []
    assert process.stdout is not None
    for line in process.stdout:
        printed.append(line)
        if found := ADDRESS.search(line):
            while process.poll() is None and not answers(found[0]):
                sleep(0.01)
            return
    raise RuntimeError("dlplay lab ended without an address:\n" + "".join(printed))


def answers(address: str) -> bool:
    """Whether a server gives a page there."""
    try:
        with urlopen(address, timeout=PATIENCE) as page:
            return page.status == 200
    except URLError:
        return False


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def first_cells() -> float:
    """Seconds from the start of a kernel until notebook 00 has imported both frameworks."""
    missing = {"import torch", "import keras"}
    begin = perf_counter()
    with opened(notebooks()[0]) as client:
        for source in run_cells(client):
            missing -= {line.strip() for line in source.splitlines()}
            if not missing:
                return perf_counter() - begin
    raise RuntimeError(f"Notebook 00 has no cell with {' or '.join(sorted(missing))}.")


if __name__ == "__main__":
    sys.exit(_report.main("startup", __doc__, measure))
