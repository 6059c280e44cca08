"""Runs the course's notebooks in kernels of their own, as JupyterLab would."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

from dlplay import resources

TIMEOUT = 600  # seconds for one cell


def isolated(home: Path) -> dict[str, str]:
    """The environment, with all that Jupyter reads and writes of a user's own under ``home``."""
    places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    jupyter = {f"JUPYTER_{place}": str(home / place.lower()) for place in places}
    lab = {f"JUPYTERLAB_{place}_DIR": str(home / place) for place in ("SETTINGS", "WORKSPACES")}
    return {**os.environ, **jupyter, **lab, "IPYTHONDIR": str(home / "ipython")}


def notebooks() -> list[Path]:
    """The course, in order."""
    return sorted(resources.folder("notebooks").glob("[0-9][0-9]-*.ipynb"))


@contextmanager
def opened(path: Path) -> Iterator[NotebookClient]:
    """A notebook whose kernel runs and has run nothing yet; the file itself never changes."""
    notebook = nbformat.read(path, as_version=4)
    options: dict[str, Any] = {"timeout": TIMEOUT, "kernel_name": "python3"}
    with TemporaryDirectory() as home:
        folder = {"metadata": {"path": home}}
        client = NotebookClient(notebook, resources=folder, **options)
        with client.setup_kernel(env=isolated(Path(home)), stderr=DEVNULL):
            yield client


def run_cells(client: NotebookClient) -> Iterator[str]:
    """Run the code cells one by one, and give the source of each when it has ended."""
    for index, cell in enumerate(client.nb.cells):
        if cell.cell_type == "code":
            client.execute_cell(cell, index)
            yield cell.source


def process_id(client: NotebookClient) -> int:
    """The kernel's process."""
    return client.km.provisioner.pid
