"""How much memory each notebook of the course needs.

    python -m benchmarks.memory [--quick] [--check] [--json]

Each notebook is run from top to bottom in a kernel of its own. Its peak is the most that the
kernel had resident at any time, by Linux's own count, or, where that is more or not to be had, the
most that it had together with its child processes when looked at, ten times a second. ``--quick``
takes the first import and the first notebook only.

The goal is for CPU builds, as Binder and JupyterHub install them. What a CUDA build of PyTorch
adds is told, on Linux, by the resident pages of NVIDIA's libraries, of triton and of PyTorch's own
libraries for CUDA at the end (/proc/PID/smaps): they belong to files that a CPU build does not
have. The goal judges the peak without them. What those libraries allocate for themselves stays in
the judged figure.

Goal (``--check``): at most 1.5 GB (1 GB is 10^9 bytes) for every notebook.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks import _report
from benchmarks._notebooks import notebooks, opened, process_id, run_cells
from benchmarks._report import Goal, Report, Row
from benchmarks._resident import Memory, watched

LIMIT, GB = 1.5, 1e9
IMPORTS = ("import torch", "import keras", "import dlplay, torch, keras")
NOTES = ("The figure is without the pages of libraries that only PyTorch's CUDA build has.",)


def measure(quick: bool) -> Report:
    """Run the notebooks one after the other."""
    most = 1 if quick else None
    rows = [row(code, of_code(code)) for code in IMPORTS[:most]]
    needs = {path.stem: of_notebook(path) for path in notebooks()[:most]}
    rows += [row(name, memory) for name, memory in needs.items()]
    goals = [
        Goal(f"peak of {name}", memory.without_cuda / GB, LIMIT, "GB")
        for name, memory in needs.items()
    ]
    return Report("Peak resident memory", rows, goals, NOTES)


def row(name: str, memory: Memory) -> Row:
    """One line of the table."""
    whole, cuda = memory.peak / GB, memory.cuda / GB
    note = f"{whole:.3f} GB in all, {cuda:.3f} GB of them the CUDA build's"
    return Row(name, memory.without_cuda / GB, "GB", note)


def of_code(code: str) -> Memory:
    """What a new interpreter needs that runs this code."""
    wait = f"{code}; print('done', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", wait],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        with watched(process.pid) as memory:
            if process.stdout.readline().strip() != b"done":
                raise RuntimeError(f"This failed: {code}")
        process.communicate(b"\n")
    return memory


def of_notebook(path: Path) -> Memory:
    """What a notebook's kernel needs from its start to the last cell."""
    with opened(path) as client, watched(process_id(client)) as memory:
        for _ in run_cells(client):
            pass
    return memory


if __name__ == "__main__":
    sys.exit(_report.main("memory", __doc__, measure))
