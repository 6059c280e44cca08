"""What an exercise is, and what a reader sees of it."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any

from dlplay.errors import DlplayError

_ROOMS = ("start", "models_and_twins")
_all: dict[str, "Exercise"] = {}


class Unanswered(Exception):
    """Raised by a check: what was to be filled in still stands there as ``...``."""


class Wrong(Exception):
    """Raised by a check: the answer is not right, and the message says what is wrong with it."""


@dataclass
class Exercise:
    """One task of a notebook.

    Attributes
    ----------
    name : str
        Notebook and task: ``"start.steps"``.
    test : callable
        Takes the answer; returns what to say where it is right, raises Wrong where it is not.
    hints : tuple of str
        Shown one more at each wrong try.
    tries : int
        Wrong tries so far, in this kernel.
    """

    name: str
    test: Callable[[Any], str]
    hints: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True)
class Result:
    """What a check says; a notebook shows it as coloured text, a terminal as plain text.

    ``right`` is None where nothing has been answered yet.
    """

    right: bool | None
    message: str
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        mark = {True: "Right", False: "Not yet", None: "Your turn"}[self.right]
        return "\n".join([f"{mark}: {self.message}", *(f"Hint: {hint}" for hint in self.hints)])

    def _repr_html_(self) -> str:
        colour = {True: "success", False: "warn", None: "info"}[self.right]
        mark = {True: "✔ Right", False: "✘ Not yet", None: "… Your turn"}[self.right]
        hints = "".join(f"<li>{escape(hint)}</li>" for hint in self.hints)
        return (
            f'<div role="status" class="dlplay-check" style="border-left: 5px solid'
            f' var(--jp-{colour}-color1, currentColor); padding: 6px 12px">'
            f"<b>{mark}</b>: {escape(self.message)}{f'<ul>{hints}</ul>' if hints else ''}</div>"
        )


def exercise(name: str, *hints: str) -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Register a check under its name; a decorator."""

    def register(test: Callable[[Any], str]) -> Callable[[Any], str]:
        _all[name] = Exercise(name, test, hints)
        return test

    return register


def exercises() -> dict[str, Exercise]:
    """All exercises, by name."""
    for room in _ROOMS:
        import_module(f"dlplay.checks.{room}")
    return _all


def check(name: str, answer: Any) -> Result:
    """Check the answer to an exercise; ``...`` means that there is none yet.

    An exception that the answer itself raises is shown, not thrown.

    Raises
    ------
    DlplayError
        For a name that is no exercise.
    """
    known = exercises()
    if name not in known:
        raise DlplayError(f"There is no exercise {name!r}: choose one of {', '.join(known)}.")
    task = known[name]
    try:
        if answer is ...:
            raise Unanswered
        return Result(True, task.test(answer))
    except Unanswered:
        return Result(None, "put your answer in place of the three dots, and run the cell again.")
    except Wrong as wrong:
        message = str(wrong)
    except Exception as error:  # the answer is the reader's own code, and may raise anything
        message = f"your answer raises {type(error).__name__}: {error}"
    task.tries += 1
    return Result(False, message, task.hints[: task.tries])
