"""When to send the next frame: as often as wanted, less often to a browser that is behind."""

import time
from collections.abc import Callable

#: How many frames the browser may be behind (it reports only twice a second)...
BEHIND = 20
#: ...and for how many seconds, before fewer are sent.
PATIENCE = 1.0
#: Seconds between frames for a browser that is behind, or that is not there.
SLOW = 0.5


class Pacer:
    """Says when a frame is due.

    Reports of painted frames do not come through while the kernel runs a cell, or when the
    page is closed. So a browser that is behind gets fewer frames, but never none.

    Parameters
    ----------
    rate : float
        Frames a second, at most.
    clock : callable
        Gives the time in seconds.
    """

    def __init__(self, rate: float = 20.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.interval = 1.0 / rate
        self.sent = 0
        self.painted = 0
        self._clock = clock
        self._next = clock()
        self._behind_since: float | None = None

    def due(self) -> bool:
        """Say whether it is time for another frame."""
        return self._clock() >= self._next

    def send(self) -> int:
        """Count a frame that is sent now, and give its number, from 1."""
        now = self._clock()
        self.sent += 1
        self._judge(now)
        if self._slow(now):
            self._next = now + SLOW
        else:  # a frame that came late may be followed by one a little early
            self._next = max(self._next, now - self.interval) + self.interval
        return self.sent

    def paint(self, frame: int) -> None:
        """Take the browser's report that it has painted a frame."""
        self.painted = max(self.painted, frame)
        now = self._clock()
        slow = self._slow(now)
        self._judge(now)
        if slow and self._behind_since is None:
            self._next = min(self._next, now + self.interval)

    def _judge(self, now: float) -> None:
        if self.sent - self.painted <= BEHIND:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now

    def _slow(self, now: float) -> bool:
        return self._behind_since is not None and now - self._behind_since > PATIENCE
