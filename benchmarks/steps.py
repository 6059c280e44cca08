"""What a step of a dlplay run costs, over a hand-written PyTorch loop and over Keras's ``fit``.

    python -m benchmarks.steps [--quick] [--check] [--json]

Same network, same starting weights, same batches in the same order, same optimizer; all keep loss
and accuracy of each batch. The contenders take turns, a block of steps each, and what decides is
the median of the ratios of blocks of the same turn. Not timed: building, tracing and compiling
(shown by itself), and the run's evaluation at the end of an epoch.

The run is timed without a view, and with ``dlplay.views.TrainingView`` at 20 updates a second with
the histograms of all layers. The view works as in a notebook, up to the socket: frames are
composed, packed and signed, and then dropped, as a script has no page to send them to.

The hand-written loop with as many threads as the run decides: that is the run's own cost. Beside
it is PyTorch's default, a thread for each core, to show what leaving a core to the browser costs.
With all cores taken, any other busy process makes the team wait at each barrier, so that figure
depends on what else the machine does. For ``fit``, the faster of NumPy arrays and a tf.data
pipeline decides.

Goals (``--check``): at most 1.05 without a view, at most 1.10 with it, in both wings.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch

from benchmarks import _report
from benchmarks._contenders import Fit, HandWritten, apart, build
from benchmarks._report import Goal, Report, Row, ratio, take_turns
from benchmarks._watched import TimedRun
from benchmarks._work import Work, cnn_on_images, mlp_on_digits
from dlplay.frameworks import WINGS, load_wing, title

RUN, WATCHED = "run", "run with the view"
LIMITS = {RUN: 1.05, WATCHED: 1.10}
SAME = 1e-3  # how far apart rounding may bring two contenders' weights in the warm-up
NOTES = (
    "us: microseconds a step, the median of the blocks. x: the median of the ratios to the rival,",
    "block by block of the same turn. 'first': what happens once (build, trace, compile), and the",
    "steps before the first block.",
)


@dataclass(frozen=True)
class Race:
    """What the contenders of one wing needed for one work.

    Attributes
    ----------
    rivals
        Of whom the fastest decides.
    times
        Seconds a step of each block, by contender.
    first
        Seconds of what came before the first block, by contender.
    updates
        That the view got, each second.
    """

    work: Work
    wing: str
    rivals: tuple[str, ...]
    times: Mapping[str, list[float]]
    first: Mapping[str, float]
    updates: float

    @property
    def rival(self) -> str:
        """The contender that decides."""
        return min(self.rivals, key=lambda name: median(self.times[name]))

    def over_rival(self, name: str) -> float:
        """A contender's time over that of the rival."""
        return ratio(self.times[name], self.times[self.rival])

    def rows(self) -> list[Row]:
        """One row for each contender."""
        return [self._row(name) for name in self.times]

    def goals(self) -> list[Goal]:
        """Without and with a view."""
        head = f"{self.work.name}, {title(self.wing)}"
        return [
            Goal(f"{head}: {name} over {self.rival}", self.over_rival(name), limit, "x")
            for name, limit in LIMITS.items()
        ]

    def _row(self, name: str) -> Row:
        note = f"{self.over_rival(name):.3f} x, first {self.first[name]:.1f} s"
        if name == self.rival:
            note += ", the rival"
        if name == WATCHED:
            note += f", {self.updates:.0f} updates a second"
        label = f"{self.work.name}, {title(self.wing)}: {name}"
        return Row(label, 1e6 * median(self.times[name]), "us", note)


def race(work: Work, wing: str, turns: int) -> Race:
    """Let the contenders of one wing take turns."""
    rivals = loops(work) if wing == "pytorch" else fits(work)
    runs = {name: TimedRun(work, {wing: build(wing, work)}, name == WATCHED) for name in LIMITS}
    first = {name: timed(contender.warm_up) for name, contender in {**runs, **rivals}.items()}
    assert_same_work([*runs.values(), *rivals.values()], wing)
    times = take_turns({name: one.block for name, one in {**runs, **rivals}.items()}, turns)
    for run in runs.values():
        run.close()
    candidates = tuple(name for name in rivals if "default" not in name)
    return Race(work, wing, candidates, times, first, runs[WATCHED].updates_a_second)


def loops(work: Work) -> dict[str, Any]:
    """The hand-written loops: with the run's threads, and with PyTorch's default."""
    default = torch.get_num_threads()
    load_wing("pytorch").devices.limit_threads()
    as_run = torch.get_num_threads()
    torch.set_num_threads(default)
    return {
        f"loop ({as_run} of {default} threads)": HandWritten(work, as_run),
        f"loop (default, {default} threads)": HandWritten(work, default),
    }


def fits(work: Work) -> dict[str, Any]:
    """``fit`` from arrays and from a pipeline."""
    return {"fit (arrays)": Fit(work, pipeline=False), "fit (tf.data)": Fit(work, pipeline=True)}


def timed(action: Any) -> float:
    """Seconds that an action takes."""
    begin = perf_counter()
    action()
    return perf_counter() - begin


def assert_same_work(contenders: list[Any], wing: str) -> None:
    """Stop where the contenders have not come to the same weights by now."""
    models = [one.models[wing] if isinstance(one, TimedRun) else one.model for one in contenders]
    distance = max(apart(models[0], other) for other in models[1:])
    if not distance < SAME:
        raise AssertionError(f"{wing}: not the same work, the weights are {distance:.1e} apart")


def together(work: Work, turns: int, alone: float) -> Row:
    """Both wings in one run with a view, over the sum of what decided for each alone."""
    run = TimedRun(work, {wing: build(wing, work) for wing in WINGS}, view=True)
    run.warm_up()
    seconds = median(run.block() for _ in range(turns))
    run.close()
    note = f"{seconds / alone:.3f} x the two rivals' sum (for information)"
    return Row(f"{work.name}, both: {WATCHED}", 1e6 * seconds, "us", note)


def measure(quick: bool) -> Report:
    """Time both networks in both wings."""
    rows: list[Row] = []
    goals: list[Goal] = []
    for work in (mlp_on_digits(10 if quick else 60), cnn_on_images(2 if quick else 6)):
        races = [race(work, wing, 3 if quick else 9) for wing in WINGS]
        for one in races:
            rows += one.rows()
            goals += one.goals()
        alone = sum(median(one.times[one.rival]) for one in races)
        rows.append(together(work, 2 if quick else 5, alone))
    return Report("Time per training step", rows, goals, NOTES)


if __name__ == "__main__":
    sys.exit(_report.main("steps", __doc__, measure))
