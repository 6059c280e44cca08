"""Who follows a run: views are shown its snapshots, and a view that fails harms nobody else."""

from collections.abc import Iterable
from typing import Protocol

from dlplay.errors import DlplayError
from dlplay.runs.snapshot import Snapshot


class View(Protocol):
    """What can follow a run."""

    def due(self) -> bool:
        """Say whether it is time for another snapshot."""

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        """Take a snapshot; called from the thread that trains."""


class Audience:
    """The views of one run."""

    def __init__(self) -> None:
        self._views: list[View] = []

    def __bool__(self) -> bool:
        return bool(self._views)

    def add(self, view: View) -> None:
        """Show this view what comes; one that follows already is not added again."""
        if view not in self._views:
            self._views.append(view)

    def remove(self, view: View) -> None:
        """Show this view no more."""
        if view in self._views:
            self._views.remove(view)

    def due(self) -> list[View]:
        """The views for which it is time."""
        return [view for view in self._views if view.due()]

    def show(self, snapshot: Snapshot, due: Iterable[View] | None = None) -> str:
        """Show a snapshot to the views that are due, or, without ``due``, to all by force.

        A view that raises is taken off; the sentence that says so is returned, else an empty one.
        """
        said = ""
        for view in list(self._views if due is None else due):
            try:
                view.show(snapshot, force=due is None)
            except Exception as error:  # a view may be anything, and fail in any way
                self.remove(view)
                said = f"A view failed and was taken off: {sentence(error)}"
        return said


def sentence(error: BaseException) -> str:
    """What a person reads: our own sentence, or the kind and the first line of another error."""
    text = str(error).strip()
    if isinstance(error, DlplayError):
        return text
    return f"{type(error).__name__}: {text.splitlines()[0] if text else 'no message'}"
