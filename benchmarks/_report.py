"""What all benchmarks share: rows, goals, a table or JSON, and repetitions taken in turn.

A benchmark is a function that measures and returns a ``Report``; ``main`` gives it its command
line. Medians are taken over repetitions that take turns, so that a machine that is busy for a
while slows all contenders alike.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from dlplay.commands import machine


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, the figure, its unit, and a remark."""

    name: str
    value: float
    unit: str
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """A figure that must be at most ``limit``."""

    name: str
    value: float
    limit: float
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the goal is reached; a figure that is no number misses it."""
        return self.value <= self.limit

    @property
    def strain(self) -> float:
        """How near the figure is to its limit: above 1 where the goal is missed."""
        if self.limit:
            return self.value / self.limit
        return 0.0 if self.met else float("inf")

    def __str__(self) -> str:
        said = "met" if self.met else "MISSED"
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name}: {self.value:.3g}{unit} (goal: at most {self.limit:g}{unit}): {said}"


@dataclass(frozen=True)
class Report:
    """What a benchmark found; ``notes`` are sentences on how it was measured."""

    title: str
    rows: Sequence[Row]
    goals: Sequence[Goal]
    notes: Sequence[str] = field(default=())

    @property
    def missed(self) -> list[Goal]:
        """The goals that are not met."""
        return [goal for goal in self.goals if not goal.met]

    @property
    def decisive(self) -> Goal:
        """The goal that is missed by most, or met most narrowly."""
        return max(self.goals, key=lambda goal: (not goal.met, goal.strain))


def table(report: Report) -> str:
    """The report as text; its last line is the figure that decides."""
    width = max(len(row.name) for row in report.rows)
    lines = [report.title, facts_line(), ""]
    for row in report.rows:
        line = f"{row.name:{width}}  {_figure(row.value):>10} {row.unit:8}  {row.note}"
        lines.append(line.rstrip())
    goals = [str(goal) for goal in report.goals if goal is not report.decisive]
    notes = ["", *report.notes] if report.notes else []
    return "\n".join([*lines, *notes, "", *goals, str(report.decisive)])


def as_json(report: Report) -> str:
    """The report as one JSON object."""
    goals = [{**asdict(goal), "met": goal.met} for goal in report.goals]
    found: dict[str, Any] = {
        "title": report.title,
        "rows": [asdict(row) for row in report.rows],
        "goals": goals,
        "notes": list(report.notes),
        "met": not report.missed,
        "decisive": report.decisive.name,
        "machine": facts(),
    }
    return json.dumps(found, indent=2)


def facts() -> dict[str, Any]:
    """What a figure depends on: cores and versions; nothing that names a machine."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": machine.cores(),
        "memory_gb": machine.memory()["total_gb"],
        "versions": machine.versions(),
    }


def facts_line() -> str:
    """The facts in one line."""
    known = facts()
    names = ("python", "torch", "keras", "tensorflow", "jupyterlab")
    versions = ", ".join(f"{name} {known['versions'][name] or '-'}" for name in names)
    return f"{known['system']}, {known['cores']} cores, {known['memory_gb']:g} GB; {versions}"


def take_turns(
    contenders: Mapping[str, Callable[[], float]], repetitions: int
) -> dict[str, list[float]]:
    """Let each contender measure once, then each once more, and so on."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repetitions):
        for name, measure in contenders.items():
            times[name].append(measure())
    return times


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of what was measured in the same turn."""
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def main(
    name: str,
    doc: str | None,
    measure: Callable[[bool], Report],
    arguments: Sequence[str] | None = None,
) -> int:
    """Read the arguments, measure, print, and return the exit status.

    Parameters
    ----------
    name, doc
        The module's name and its docstring, for ``--help``.
    measure
        Makes the report; told whether the run is a quick one.
    """
    options = _parser(name, doc).parse_args(arguments)
    report = measure(options.quick)
    print(as_json(report) if options.json else table(report))
    if options.check and report.missed:
        print("\n".join(f"missed: {goal}" for goal in report.missed), file=sys.stderr)
        return 1
    return 0


def _parser(name: str, doc: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=doc)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, rougher figures")
    return parser


def _figure(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
