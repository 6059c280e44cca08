"""The exercises of notebook 00."""

import math
from numbers import Integral
from typing import Any

from dlplay.checks.exercise import Wrong, exercise
from dlplay.data import load
from dlplay.runs import train
from dlplay.settings import Run


@exercise(
    "start.steps",
    "An epoch shows each training example once; a step shows one batch.",
    "dlplay.load('digits') says how many training examples there are.",
    "The last batch may be smaller, and is a step too: round up.",
)
def steps(answer: Any) -> str:
    """How many steps one epoch of the digits takes at a batch size of 64."""
    count = len(load("digits").x_train)
    if isinstance(answer, bool) or not isinstance(answer, Integral):
        raise Wrong(f"a whole number is wanted, and this is {answer!r}.")
    if answer == count // 64:
        raise Wrong(
            f"{answer} full batches leave {count % 64} examples over: they are a batch too."
        )
    if answer == count:
        raise Wrong("that is the number of examples: a step takes 64 of them at once.")
    if answer != math.ceil(count / 64):
        raise Wrong(f"{answer} steps of 64 do not add up to the {count} training examples.")
    return f"{count} examples make {answer} batches, the last of {count % 64}."


@exercise(
    "start.small",
    "Fewer parameters: a smaller width, or the MLP.",
    "A small network may need a larger learning rate, or Adam.",
    "Try a CNN of width 6, Adam, a learning rate of 0.01, and batches of 16.",
)
def small(answer: Any) -> str:
    """Settings with which a network of at most 2,500 parameters reaches 90% in ten epochs."""
    if not isinstance(answer, Run):
        raise Wrong(f"settings.Run(...) is wanted, and this is a {type(answer).__name__}.")
    if answer.epochs > 10 or answer.data != "digits":
        raise Wrong("the run must be on 'digits', and of at most 10 epochs.")
    training = train(answer)
    curves = training.wait().curves
    size = min(_parameters(model) for model in training.models.values())
    if size > 2500:
        raise Wrong(f"this network has {size:,} parameters: at most 2,500 are allowed.")
    scores = {wing: curve.test_accuracy[-1] for wing, curve in curves.items()}
    if min(scores.values()) < 0.9:
        said = " and ".join(f"{score:.1%} in {wing}" for wing, score in scores.items())
        raise Wrong(f"the test accuracy is {said}: at least 90% are wanted in each.")
    return f"{size:,} parameters, and at least {min(scores.values()):.1%} on the test set."


def _parameters(model: Any) -> int:
    """PyTorch's models list parameters with ``numel``; Keras's count themselves."""
    if hasattr(model, "count_params"):
        return int(model.count_params())
    return sum(parameter.numel() for parameter in model.parameters())
