"""A run that trains in the background: start, pause, step, stop, and turn its learning rate."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from dlplay.errors import RunError
from dlplay.runs import turns
from dlplay.runs.audience import Audience, View, sentence
from dlplay.runs.own import as_dataset, as_models, as_run
from dlplay.runs.session import Session
from dlplay.runs.snapshot import Snapshot
from dlplay.settings import Run

_BUSY = ("preparing", "running")


class Training:
    """One run in a thread of its own; every method returns at once, ``wait`` excepted.

    A thread exists only while the run prepares or trains: a paused, stopped, finished or failed
    run holds none. One run trains at a time: starting another pauses this one.

    Parameters
    ----------
    settings : Run, optional
        What to train, and how.
    models : mapping of str to model, optional
        Models of your own, ``{"pytorch": net, "keras": model}`` or one of them, that give logits.
        They are trained from where they stand, and stay yours.
    data : Dataset or (x, y), optional
        Data of your own in place of ``settings.data``: x float, channels last; y whole numbers,
        the classes. Of a pair, every fifth example becomes a test example.

    Raises
    ------
    SettingError, ModelError
        Where one of them is none of these; the message says what is expected.
    """

    def __init__(
        self,
        settings: Run | None = None,
        models: Mapping[str, Any] | None = None,
        data: Any = None,
    ) -> None:
        self._settings = as_run(settings)
        self._models, self._data = as_models(models), as_dataset(data)
        self._audience = Audience()
        self._lock = threading.RLock()
        self._state = "ready"
        self._message = ""
        self._session: Session | None = None
        self._thread: threading.Thread | None = None
        self._halt: tuple[str, str] | None = None  # the state to end in, and why
        self._ending = False  # whether the thread is past the point where it could go on
        self._again: bool | None = None  # told to start (False) or step (True) while it ends
        self._wanted: list[Future[Snapshot]] = []
        self.error: BaseException | None = None

    # -- what it is ---------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """One of ``dlplay.runs.snapshot.STATES``."""
        return self._state

    @property
    def models(self) -> Mapping[str, Any]:
        """The models, by wing; empty before the first start of a run that builds its own."""
        return self._session.models if self._session else self._models or {}

    @property
    def settings(self) -> Run:
        """The settings. A new learning rate acts from the next step on, also while it trains.

        Any other change ends a paused run, so that the next start is a new one.
        Raises RunError where such a change is made while the run trains.
        """
        return self._settings

    @settings.setter
    def settings(self, settings: Run) -> None:
        settings = as_run(settings)
        with self._lock:
            same = settings.replace(learning_rate=self._settings.learning_rate) == self._settings
            if not same and self._state in _BUSY:
                raise RunError(
                    "Only the learning rate can change while a run trains: stop it first."
                )
            if not same and self._session is not None:
                self._forget()
            self._settings = settings
            if self._session is not None:
                self._session.learning_rate = settings.learning_rate

    def snapshot(self, timeout: float = 60.0) -> Snapshot:
        """The run at this moment.

        Raises RunError where a step takes longer than ``timeout`` seconds.
        """
        with self._lock:
            if self._thread is None:
                return self._make_snapshot()
            future: Future[Snapshot] = Future()
            self._wanted.append(future)
        try:
            return future.result(timeout)
        except FutureTimeout:
            raise RunError(f"The run made no step within {timeout:g} s: wait longer.") from None

    def follow(self, view: View) -> None:
        """Show every snapshot that ``view`` says is due, and every change of state."""
        self._audience.add(view)
        if self._thread is None:
            view.show(self._make_snapshot(), force=True)

    def unfollow(self, view: View) -> None:
        """Show this view no more."""
        self._audience.remove(view)

    # -- what it can be told ------------------------------------------------------------------

    def start(self) -> "Training":
        """Train: a paused run goes on, any other starts anew; one that trains is left alone."""
        return self._begin(once=False)

    def step(self) -> "Training":
        """Make one step and pause; a run that trains is paused."""
        if self._state in _BUSY:
            return self.pause()
        return self._begin(once=True)

    def pause(self, why: str = "") -> "Training":
        """Pause after the step under way."""
        return self._ask("paused", why)

    def stop(self, why: str = "") -> "Training":
        """End after the step under way; the next start is a new run."""
        with self._lock:
            at_rest = self._thread is None and self._state == "paused"
            if at_rest:
                self._set("stopped", why)
        if at_rest:
            self._publish()
        return self._ask("stopped", why)

    def wait(self, timeout: float | None = None) -> Snapshot:
        """Wait until the run pauses or ends, and give its last snapshot.

        Raises
        ------
        RunError
            Where it still trains after ``timeout`` seconds.
        Exception
            What ended the training, where it failed.
        """
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
            if thread.is_alive():
                raise RunError(
                    f"The run still trains after {timeout:g} s: wait longer, or stop it."
                )
        if self._state == "failed" and self.error is not None:
            raise self.error
        return self.snapshot()

    # -- how it works -------------------------------------------------------------------------

    def _begin(self, once: bool) -> "Training":
        with self._lock:
            if self._thread is None:
                self._prepare()
                self._thread = threading.Thread(
                    target=self._work, args=(once,), name="dlplay-run", daemon=True
                )
                self._thread.start()
            elif self._ending:
                self._again = once  # it still makes its last step: it goes on after that
        return self

    def _prepare(self) -> None:
        if self._state != "paused":
            self._forget()
        self._halt, self._ending, self.error = None, False, None
        self._set("preparing" if self._session is None else "running", "")

    def _ask(self, state: str, why: str) -> "Training":
        with self._lock:
            if self._thread is not None:
                self._halt, self._ending, self._again = (state, why), True, None
        return self

    def _work(self, once: bool | None) -> None:
        """The thread's whole life: one run, or more where it is told to go on as it ends."""
        while once is not None:
            self._live(once)
            with self._lock:
                once, self._again = self._again, None
                if once is None:
                    self._thread = None
                    self._answer(self._make_snapshot())
                else:
                    self._prepare()

    def _live(self, once: bool) -> None:
        try:
            with turns.taken_by(self):
                self._publish()
                state, message = self._train(once)
        except Exception as error:  # whatever a model or a framework raises is the run's to tell
            self.error = error
            state, message = "failed", sentence(error)
        with self._lock:
            self._ending = True
            self._set(state, message)
        self._publish()

    def _train(self, once: bool) -> tuple[str, str]:
        if self._session is None:
            session = Session(self._settings, self._models, self._data)
            with self._lock:
                self._session = session
                session.learning_rate = self._settings.learning_rate
                self._set("running", "")
            self._publish()
        session = self._session
        session.enter_thread()
        while not session.finished and self._halt is None:
            due = self._audience.due()
            session.tick(look=bool(due) or (once and bool(self._audience)))
            if due or self._wanted:
                self._share(due)
            if once:
                break
        if session.finished:
            return "finished", ""
        return self._halt or ("paused", "")

    def _share(self, due: list[View]) -> None:
        snapshot = self._make_snapshot()
        self._message = self._audience.show(snapshot, due) or self._message
        with self._lock:
            self._answer(snapshot)

    def _publish(self) -> None:
        self._message = self._audience.show(self._make_snapshot()) or self._message

    def _answer(self, snapshot: Snapshot) -> None:
        for future in self._wanted:
            future.set_result(snapshot)
        self._wanted.clear()

    def _make_snapshot(self) -> Snapshot:
        if self._session is not None:
            return self._session.snapshot(self._state, self._message)
        epochs, rate = self._settings.epochs, self._settings.learning_rate
        return Snapshot(self._state, epochs=epochs, learning_rate=rate, message=self._message)

    def _set(self, state: str, message: str) -> None:
        self._state, self._message = state, message

    def _forget(self) -> None:
        self._session = None
        self._set("ready", "")


def train(
    settings: Run | None = None, models: Mapping[str, Any] | None = None, **changes: Any
) -> Training:
    """Start a run in the background and return it.

    Parameters
    ----------
    settings, models
        As for ``Training``.
    **changes
        Fields of ``settings`` to change, ``dlplay.train(epochs=3, learning_rate=0.1)``; ``data``
        may also be data of your own, as for ``Training``.

    Raises
    ------
    SettingError
        Where a setting is not valid.
    """
    own = None if isinstance(changes.get("data", ""), str) else changes.pop("data")
    return Training(as_run(settings).replace(**changes), models, own).start()
