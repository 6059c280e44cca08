"""One run trains at a time: two of them would only share the cores, and double every wait."""

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from dlplay.runs.training import Training

_turn = threading.Lock()
_names = threading.Lock()
_asking: list["Training"] = []  # who trains or waits, the newest last
_threads: WeakSet[threading.Thread] = WeakSet()  # all that ever took a turn and are still there


@contextmanager
def taken_by(training: "Training") -> Iterator[None]:
    """Pause whoever trains or waits to train, and hold the turn; called in the run's thread."""
    with _names:
        others = list(_asking)
        _asking.append(training)
        _threads.add(threading.current_thread())
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
    """Let every run's thread end before Python does.

    Python ends a thread that is left over at the first moment at which it comes back from native
    code, and C++ answers that by ending the process with SIGABRT.
    """
    with _names:
        asking, threads = list(_asking), list(_threads)
    for training in asking:
        training.stop()
    for thread in threads:
        thread.join(timeout=10)
