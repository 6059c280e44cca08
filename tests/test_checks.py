"""The exercises' checks: the solution passes, plausible wrong answers are told apart."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dlplay.checks import check, exercises
from dlplay.errors import DlplayError
from dlplay.settings import Network, Optimizer, Run

SMALL = Run(
    network=Network(width=6),
    optimizer=Optimizer(name="adam"),
    learning_rate=0.01,
    batch_size=16,
    epochs=10,
)


def nothing(*arguments: Any) -> None:
    """An answer without a return."""


def blocks(weight: np.ndarray, channels: int, height: int, width: int) -> np.ndarray:
    return weight.reshape(len(weight), channels, height, width)


SOLUTIONS: dict[str, Any] = {
    "start.steps": 23,
    "start.small": SMALL,
    "models_and_twins.convolution": lambda w: w.transpose(2, 3, 1, 0),
    "models_and_twins.flatten": lambda w, *size: (
        blocks(w, *size).transpose(0, 2, 3, 1).reshape(len(w), -1).T
    ),
}

#: For each exercise plausible wrong answers, and a part of what the reader is told.
WRONG: dict[str, list[tuple[Any, str]]] = {
    "start.steps": [
        (22, "leave 29 examples over"),
        (1437, "that is the number of examples"),
        (29, "do not add up"),
        (22.45, "a whole number is wanted"),
        (True, "a whole number is wanted"),
        ("23", "a whole number is wanted"),
    ],
    "start.small": [
        ("small", "settings.Run(...) is wanted"),
        (SMALL.replace(epochs=11), "at most 10 epochs"),
        (SMALL.replace(data="moons"), "must be on 'digits'"),
        (SMALL.replace(epochs=1, network={"width": 16}), "at most 2,500 are allowed"),
        (SMALL.replace(epochs=1, learning_rate=1e-6), "at least 90% are wanted"),
        (SMALL.replace(batch_size=5000), "raises SettingError: The batch size is 5000"),
    ],
    "models_and_twins.convolution": [
        (lambda w: w.reshape(5, 5, 3, 4), "reshape moves no axis"),
        (lambda w: w.transpose(3, 2, 1, 0), "height and width have changed places"),
        (lambda w: w.transpose(2, 3, 0, 1), "in and out have changed places"),
        (lambda w: w.transpose(2, 3, 1, 0)[::-1, ::-1], "the kernel is flipped"),
        (lambda w: w, "the shape is (4, 3, 5, 5), but"),
        (lambda w: w.transpose(2, 3, 1, 0) + 1, "the values stand in other places"),
        (nothing, "it needs a return"),
        (np.zeros(3), "a function is wanted, and this is a ndarray"),
        (lambda w: 1 / 0, "your answer raises ZeroDivisionError: division by zero"),
        (lambda: 1, "your answer raises TypeError"),
        (lambda w: ["a"] * 3, "the shape is (3,)"),
    ],
    "models_and_twins.flatten": [
        (lambda w, *size: w.T, "that is the transpose alone"),
        (
            lambda w, *size: blocks(w, *size).transpose(0, 2, 3, 1).reshape(len(w), -1),
            "transpose at the end",
        ),
        (
            lambda w, *size: blocks(w, *size).transpose(0, 3, 2, 1).reshape(len(w), -1).T,
            "height and width have changed places",
        ),
        (nothing, "it needs a return"),
        (lambda w, *size: np.zeros(2), "the shape is (2,)"),
    ],
}
CASES = [(name, *case) for name, cases in WRONG.items() for case in cases]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """No tries so far, and none left behind."""
    tries = {name: task.tries for name, task in exercises().items()}
    for task in exercises().values():
        task.tries = 0
    yield
    for name, number in tries.items():
        exercises()[name].tries = number


def test_every_exercise_is_tried_here() -> None:
    assert set(exercises()) == set(SOLUTIONS) == set(WRONG)
    assert min(map(len, WRONG.values())) >= 3


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_solution_passes(name: str) -> None:
    result = check(name, SOLUTIONS[name])
    assert result.right is True, result.message
    assert str(result).startswith("Right: ")
    assert "✔ Right" in result._repr_html_()


@pytest.mark.parametrize(
    ("name", "answer", "said"), CASES, ids=[f"{name}-{said[:20]}" for name, _, said in CASES]
)
def test_a_wrong_answer_is_told_why(name: str, answer: Any, said: str) -> None:
    result = check(name, answer)
    assert result.right is False
    assert said in result.message
    assert len(result.hints) == 1
    assert str(result).startswith("Not yet: ")


@pytest.mark.parametrize("name", WRONG)
def test_the_sentences_differ(name: str) -> None:
    said = [said for _, said in WRONG[name]]
    assert len({*said}) >= 3


@pytest.mark.parametrize("name", SOLUTIONS)
def test_three_dots_are_your_turn_and_no_try(name: str) -> None:
    result = check(name, ...)
    assert result.right is None
    assert str(result).startswith("Your turn: ")
    assert (result.hints, exercises()[name].tries) == ((), 0)


@pytest.mark.parametrize("name", ["models_and_twins.convolution", "models_and_twins.flatten"])
def test_a_function_that_returns_three_dots_is_your_turn(name: str) -> None:
    assert check(name, lambda *arguments: ...).right is None


@pytest.mark.parametrize("name", SOLUTIONS)
def test_hints_grow_with_each_try_and_end(name: str) -> None:
    hints = exercises()[name].hints
    assert len(hints) >= 2
    for number in range(1, len(hints) + 3):
        shown = check(name, object()).hints
        assert shown == hints[:number]


@pytest.mark.parametrize("whole", [np.int64(23), np.uint8(23)])
def test_a_whole_number_of_numpy_s_is_one_too(whole: Any) -> None:
    assert check("start.steps", whole).right is True


def test_what_an_answer_says_is_no_html() -> None:
    shown = check("start.steps", "<script>")._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown


def test_an_exercise_that_is_not_there_gets_a_sentence() -> None:
    with pytest.raises(DlplayError, match=re.escape("no exercise 'start.step': choose one of")):
        check("start.step", 23)
