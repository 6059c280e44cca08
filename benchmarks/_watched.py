"""A dlplay run as a contender: it trains in its thread, alone or with the live view attached."""

from collections.abc import Mapping
from itertools import pairwise
from time import perf_counter
from typing import Any

import comm
from comm.base_comm import BaseComm
from jupyter_client.session import Session

from benchmarks._work import Work
from dlplay.runs import Snapshot, Training
from dlplay.views import TrainingView


class TimedRun:
    """A run that goes on for one block at a time and is paused in between.

    The time of a block includes handing out its losses at the end, and leaves out the steps in
    which an epoch ends, as those evaluate the test set. The first ``SETTLE`` steps of a block are
    not timed: the first two of them send an update each, as the pause was longer than 50 ms.
    """

    SETTLE = 10

    def __init__(self, work: Work, models: Mapping[str, Any], view: bool) -> None:
        self._work = work
        self._run = Training(work.settings.replace(wings=tuple(models)), models, work.data)
        self._clock = _StepClock(self._run)
        self._updates, self._seconds = 0, 0.0
        self._run.follow(self._clock)
        self.page = Page() if view else None
        if self.page is not None:
            self._run.follow(self.page)

    @property
    def models(self) -> Mapping[str, Any]:
        """The models, by wing."""
        return self._run.models

    def warm_up(self) -> None:
        """Build, trace, and make the steps before the first block."""
        self._go(self._work.warm_up)

    def block(self) -> float:
        """Make the steps of a block; seconds a step."""
        self._go(self._work.block)
        self._count_updates()
        first, times, per_epoch = self._clock.before, self._clock.times, self._work.steps_per_epoch
        kept = [
            end - begin
            for step, (begin, end) in enumerate(pairwise(times), first)
            if (step + 1) % per_epoch and step >= first + self.SETTLE
        ]
        return sum(kept) / len(kept)

    @property
    def updates_a_second(self) -> float:
        """How often the view was shown something in the timed part of all blocks."""
        return self._updates / self._seconds

    def _count_updates(self) -> None:
        begin, end = self._clock.times[self.SETTLE], self._clock.times[-1]
        shown = self.page.shown if self.page else []
        self._updates += sum(begin < moment < end for moment in shown)
        self._seconds += end - begin

    def _go(self, steps: int) -> None:
        self._clock.begin(steps)
        self._run.start().wait(timeout=300)

    def close(self) -> None:
        """End the run."""
        self._run.stop()
        if self.page is not None:
            self.page.close()


class _StepClock:
    """A view that is never due: it is asked before each step, and told when the run pauses."""

    def __init__(self, run: Training) -> None:
        self._run = run
        self._steps = 0
        self.before = 0
        self.times: list[float] = []

    def begin(self, steps: int) -> None:
        """Pause the run after so many steps more."""
        self.before += self._steps
        self._steps, self.times = steps, []

    def due(self) -> bool:
        self.times.append(perf_counter())
        if len(self.times) == self._steps:
            self._run.pause()
        return False

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        if len(self.times) == self._steps:
            self.times.append(perf_counter())


class Page:
    """The live view at 20 updates a second, with a page that paints each of them at once."""

    def __init__(self) -> None:
        create, comm.create_comm = comm.create_comm, _Kernel
        try:
            self._view = TrainingView(rate=20.0)
        finally:
            comm.create_comm = create
        self.shown: list[float] = []

    def due(self) -> bool:
        return self._view.due()

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        self._view.show(snapshot, force)
        self.shown.append(perf_counter())
        number = self._view.header["frame"]
        painted = {"kind": "painted", "frame": number, "frames": number, "latency": 0.02}
        self._view._handle_custom_msg(painted, [])

    def close(self) -> None:
        """Take the view off."""
        self._view.close()


class _Kernel(BaseComm):
    """Does what a kernel does with a message, up to its socket: pack it, sign it, drop it."""

    _session = Session(key=b"a key")

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **_: Any
    ) -> None:
        content = {"comm_id": self.comm_id, "data": data or {}}
        self._session.serialize(self._session.msg(msg_type, content, metadata=metadata))
