"""``dlplay doctor``: what is installed, whether it works, and what to do where it does not."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dlplay import frameworks
from dlplay.commands import machine, probes

ENOUGH_MEMORY_GB = 2.0


@dataclass(frozen=True)
class Problem:
    """What is wrong, what to do, and whether dlplay cannot work until it is done."""

    what: str
    remedy: str
    stops: bool = True


def run(arguments: argparse.Namespace) -> int:
    """Print the report, for people or as one JSON object; 1 where a problem stops dlplay."""
    if not arguments.json:
        print("Trying both frameworks; this takes about half a minute.", flush=True)
    report = examine()
    found = list(problems(report))
    works = not any(problem.stops for problem in found)
    if arguments.json:
        listed = [asdict(problem) for problem in found]
        print(json.dumps({**report, "problems": listed, "works": works}, indent=2))
    else:
        print("\n".join([*_describe(report), "", *_advise(found, works)]))
    return 0 if works else 1


def examine() -> dict[str, Any]:
    """All that is known about this installation, as plain values."""
    return {
        "platform": platform.platform(),
        "executable": sys.executable,
        "kernel": machine.kernel(),
        "versions": machine.versions(),
        "cores": machine.cores(),
        "memory": machine.memory(),
        "widgets": machine.widgets(),
        "keras_backend": os.environ.get("KERAS_BACKEND"),
        "frameworks": probes.frameworks_report(),
    }


def problems(report: dict[str, Any]) -> Iterator[Problem]:
    """What is wrong in a report, the worst first."""
    yield from _jupyter_problems(report)
    yield from _framework_problems(report)
    yield from _conflict_problems(report["frameworks"]["together"])
    free = report["memory"]["free_gb"]
    if free < ENOUGH_MEMORY_GB:
        yield Problem(
            f"Only {free:.1f} GB of memory are free; both frameworks and a browser need"
            f" {ENOUGH_MEMORY_GB:.0f} GB.",
            "Close other programs and notebooks, or train one framework at a time.",
            stops=False,
        )


def _jupyter_problems(report: dict[str, Any]) -> Iterator[Problem]:
    if report["versions"]["jupyterlab"] is None:
        yield Problem("JupyterLab is not installed.", "Run `pip install jupyterlab`.")
        return
    for package, state in report["widgets"].items():
        if state["fault"]:
            yield Problem(
                f"Widgets will not render: {package} {state['fault']}.", _widget_remedy(package)
            )
    kernel = report["kernel"]
    if kernel is None:
        yield Problem("Jupyter finds no Python kernel.", "Run `pip install ipykernel`.")
    elif not _same_file(kernel, report["executable"]):
        yield Problem(
            f"Jupyter's kernel runs another Python than this one: {kernel}.",
            "Run `python -m ipykernel install --sys-prefix` with this Python.",
        )


def _widget_remedy(package: str) -> str:
    packages = "ipywidgets jupyterlab_widgets" if package == "ipywidgets" else package
    return (
        f"Run `pip install --force-reinstall --no-deps {packages}` with this Python, and if the"
        f" extension is disabled `jupyter labextension enable {machine.WIDGETS[package]}`;"
        " then start `dlplay lab` again."
    )


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).parent.samefile(Path(other).parent)
    except OSError:
        return False


def _framework_problems(report: dict[str, Any]) -> Iterator[Problem]:
    found = report["frameworks"]
    missing = [wing for wing in frameworks.WINGS if not found[wing]["installed"]]
    for wing in missing:
        yield Problem(
            f"{frameworks.title(wing)} is not installed; the other framework works alone.",
            f"Run `{frameworks.INSTALL[wing]}`.",
            stops=len(missing) == len(frameworks.WINGS),
        )
    backend = report["keras_backend"]
    if backend not in (None, "tensorflow"):
        yield Problem(
            f"KERAS_BACKEND is {backend!r}, but dlplay's Keras side runs on TensorFlow.",
            "Unset KERAS_BACKEND, or set it to tensorflow, before Python starts.",
        )
    for wing in frameworks.WINGS:
        if found[wing]["fault"] and not (wing == "keras" and backend not in (None, "tensorflow")):
            yield Problem(
                f"{frameworks.title(wing)} does not load: {found[wing]['fault']}",
                f"Install it again: `{frameworks.INSTALL[wing]} --force-reinstall`.",
            )
    if found["torchvision"]["fault"] and not found["pytorch"]["fault"]:
        yield Problem(
            f"torchvision does not load, as when its version or build does not fit torch's"
            f" (CPU or CUDA): {found['torchvision']['fault']}",
            "Install both in one command: `pip install --force-reinstall torch torchvision`."
            " Only MNIST, Fashion-MNIST and CIFAR-10 need torchvision.",
            stops=False,
        )


def _conflict_problems(together: dict[str, Any]) -> Iterator[Problem]:
    if together["fault_with_dlplay"]:
        yield Problem(
            f"Both frameworks in one process fail, also with dlplay:"
            f" {together['fault_with_dlplay']}",
            "Update all three: `pip install --upgrade dlplay torch torchvision tensorflow`;"
            " until then, train one framework at a time.",
        )


def _describe(report: dict[str, Any]) -> Iterator[str]:
    versions, memory, found = report["versions"], report["memory"], report["frameworks"]
    yield f"Python on {report['platform']}: {report['executable']}"
    for package, version in versions.items():
        yield f"  {package:<12} {version or '-'}"
    yield f"Cores: {report['cores']}"
    yield f"Memory: {memory['total_gb']:.1f} GB, {memory['free_gb']:.1f} GB free"
    for wing in frameworks.WINGS:
        devices = ", ".join(found[wing]["devices"]) or "none"
        yield f"Devices in {frameworks.title(wing)}: {devices}"
    faults = any(state["fault"] for state in report["widgets"].values())
    yield f"Widgets will render: {'no' if faults else 'yes'}"
    yield f"Both frameworks in one process: {_together(found['together'])}"


def _together(together: dict[str, Any]) -> str:
    without, guarded = together["fault_without_dlplay"], together["fault_with_dlplay"]
    if not together["tried"]:
        return "not tried, because one is missing"
    if guarded:
        return f"fails ({guarded})"
    if without:
        return f"fails without dlplay ({without}), works after `import dlplay`"
    return "works"


def _advise(found: list[Problem], works: bool) -> Iterator[str]:
    if not found:
        yield "No problem found."
    for number, problem in enumerate(found, 1):
        yield f"Problem {number}: {problem.what}"
        yield f"  What to do: {problem.remedy}"
    if found and works:
        yield "dlplay works all the same."
