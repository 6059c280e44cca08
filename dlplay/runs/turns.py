"""One run trains at a time: two of them would only share the cores, and double every wait."""

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlplay.runs.training import Training

_turn = threading.Lock()
_names = threading.Lock()
_asking: list["Training"] = []  # who trains or waits, the newest last


@contextmanager
def taken_by(training: "Training") -> Iterator[None]:
    """Pause whoever trains or waits to train, and hold the turn; called in the run's thread."""
    with _names:
        others = list(_asking)
        _asking.append(training)
    try:
        for other in others:
            other.pause("Paused, because another run was started.")
        with _turn:
            yield
    finally:
        with _names:
            _asking.remove(training)


@atexit.register
def _end_all() -> None:
    """Let the step under way end before the frameworks are taken down with the process."""
    with _names:
        asking = list(_asking)
    for training in asking:
        training.stop()
    if _turn.acquire(timeout=10):
        _turn.release()
