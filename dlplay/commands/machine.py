"""What ``dlplay doctor`` reads without a framework: versions, cores, memory, widgets, kernel."""

import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

import dlplay

PACKAGES = (
    "torch",
    "torchvision",
    "triton",
    "keras",
    "tensorflow",
    "numpy",
    "jupyterlab",
    "ipykernel",
    "ipywidgets",
    "anywidget",
)

#: The package in Python, and its half in the browser.
WIDGETS = {"ipywidgets": "@jupyter-widgets/jupyterlab-manager", "anywidget": "anywidget"}


def version(package: str) -> str | None:
    """The installed version, or None. TensorFlow's CPU build has a name of its own."""
    names = (package, f"{package}-cpu") if package == "tensorflow" else (package,)
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def versions() -> dict[str, str | None]:
    """The versions of dlplay, Python and what dlplay builds on; None for what is missing."""
    found = {package: version(package) for package in PACKAGES}
    return {"dlplay": dlplay.__version__, "python": platform.python_version(), **found}


def cores() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> dict[str, float]:
    """Total and free memory in GB (10^9 bytes), within the limit of a container, if any."""
    machine = psutil.virtual_memory()
    total, free = machine.total, machine.available
    limit = _container_limit()
    if limit is not None and limit[0] < total:
        total, free = limit[0], min(free, limit[1])
    return {"total_gb": round(total / 1e9, 2), "free_gb": round(free / 1e9, 2)}


def _container_limit(cgroup: Path = Path("/sys/fs/cgroup")) -> tuple[int, int] | None:
    """Limit and what is left of it, as Linux's control groups (version 2) state them."""
    try:
        limit = int((cgroup / "memory.max").read_text())
        used = int((cgroup / "memory.current").read_text())
        cache = re.search(r"^inactive_file (\d+)", (cgroup / "memory.stat").read_text(), re.M)
    except (OSError, ValueError):  # no such limit: the file is missing, or says "max"
        return None
    return limit, limit - used + (int(cache[1]) if cache else 0)


def widgets() -> dict[str, dict[str, Any]]:
    """For each widget package: its version, that of its half in JupyterLab, and the fault, if any.

    The places searched are those of the JupyterLab that runs in this Python.
    """
    browser = _lab_extensions()
    return {package: _widget(package, browser) for package in WIDGETS}


def _widget(package: str, browser: dict[str, str | None]) -> dict[str, Any]:
    here, there = version(package), browser.get(WIDGETS[package], "missing")
    if here is None:
        fault: str | None = "is not installed"
    elif there == "missing":
        fault = "has no extension where this Python's JupyterLab looks for one"
    elif there is None:
        fault = "has an extension in JupyterLab that is disabled"
    else:
        fault = None if _fit(package, here, there) else "does not fit its JupyterLab extension"
    return {"version": here, "extension": there, "fault": fault}


def _fit(package: str, here: str, there: str) -> bool:
    if package == "ipywidgets":  # ipywidgets 8 speaks with its manager 5, 7 with 2 and 3
        return (here.split(".")[0], there.split(".")[0]) == ("8", "5")
    return here.split(".")[:2] == there.split(".")[:2]


def _lab_extensions() -> dict[str, str | None]:
    """The versions of JupyterLab's prebuilt extensions by name; None for a disabled one."""
    try:
        from jupyter_core.paths import jupyter_path
        from jupyterlab.commands import get_app_dir
        from jupyterlab_server.config import get_federated_extensions, get_page_config
    except ImportError:
        return {}
    paths = jupyter_path("labextensions")
    page = get_page_config(paths, str(Path(get_app_dir()) / "settings"))
    disabled = {name.split(":")[0] for name in page["disabledExtensions"]}
    found = get_federated_extensions(paths)
    return {
        name: None if name in disabled else extension["version"]
        for name, extension in found.items()
    }


def kernel() -> str | None:
    """The Python that Jupyter's kernel "python3" runs; None where there is no kernel."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return None
    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return None
    bare = re.fullmatch(r"python(3(\.\d+)?)?", command)  # Jupyter puts its own Python there
    return sys.executable if bare else command
