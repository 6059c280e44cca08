"""What ``dlplay doctor`` asks the frameworks: each question in a process of its own.

A framework can crash, hang or print; none of it reaches the process that asks.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dlplay
from dlplay import frameworks

TIMEOUT = 180.0  # seconds; a first import from a slow disk takes long

_HOME = Path(dlplay.__file__).resolve().parents[1]

# dlplay is found last, so that nothing beside it can stand in for another package
_FIND_DLPLAY = f"import sys; sys.path.append({str(_HOME)!r})\n"

_DEVICES = """
import json
from dlplay.frameworks import load_wing
print(json.dumps(load_wing({wing!r}).devices.available()))
"""

_TORCHVISION = """
from importlib import import_module
import_module("torchvision")
print("true")
"""

_BOTH = """
from importlib import import_module
torch = import_module("torch")
import_module("tensorflow")
torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
print("true")
"""


@dataclass(frozen=True)
class Answer:
    """What a process said: ``value`` from JSON, or None and ``fault``, one line that says why."""

    value: Any = None
    fault: str | None = None


def ask(code: str, timeout: float = TIMEOUT) -> Answer:
    """Run code in a new Python; its last line of output is the answer, in JSON."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Answer(fault=f"gave no answer within {timeout:.0f} seconds")
    if done.returncode == 0:
        return _read(done.stdout)
    if done.returncode == 1:
        return Answer(fault=(done.stderr.strip().splitlines() or ["ended with status 1"])[-1])
    return Answer(fault=f"crashed (status {done.returncode})")


def _read(output: str) -> Answer:
    last = (output.splitlines() or [""])[-1]
    try:
        return Answer(value=json.loads(last))
    except ValueError:
        return Answer(fault=f"gave no answer, but {last!r}")


def frameworks_report() -> dict[str, dict[str, Any]]:
    """Installed or not, devices, the fault if one does not load; and the two in one process."""
    present = [wing for wing in frameworks.WINGS if frameworks.installed(wing)]
    questions = {wing: _FIND_DLPLAY + _DEVICES.format(wing=wing) for wing in present}
    if "pytorch" in present:
        questions["torchvision"] = _TORCHVISION
    if len(present) == 2:
        questions["unguarded"] = _BOTH
        questions["guarded"] = _FIND_DLPLAY + "import dlplay\n" + _BOTH
    with ThreadPoolExecutor(max_workers=2) as pool:  # each takes a core and up to 1 GB
        answers = dict(zip(questions, pool.map(ask, questions.values()), strict=True))
    report = {wing: _wing(wing, answers.get(wing)) for wing in frameworks.WINGS}
    seen = answers.get("torchvision")
    return {**report, "torchvision": {"fault": seen and seen.fault}, "together": _both(answers)}


def _wing(wing: str, answer: Answer | None) -> dict[str, Any]:
    return {
        "installed": answer is not None,
        "devices": answer.value if answer and answer.value else [],
        "fault": answer and answer.fault,
    }


def _both(answers: dict[str, Answer]) -> dict[str, Any]:
    tried = "guarded" in answers
    return {
        "tried": tried,
        "fault_without_dlplay": answers["unguarded"].fault if tried else None,
        "fault_with_dlplay": answers["guarded"].fault if tried else None,
    }
