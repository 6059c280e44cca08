"""The exercises of notebook 03."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dlplay.checks.exercise import Unanswered, Wrong, exercise


def _array(answer: Callable[..., Any], *arguments: Any) -> np.ndarray:
    """Call the answer and take what it returns as an array; a tensor is fetched."""
    if not callable(answer):
        raise Wrong(f"a function is wanted, and this is a {type(answer).__name__}.")
    returned = answer(*arguments)
    if returned is ...:
        raise Unanswered
    if returned is None:
        raise Wrong("the function returns nothing: it needs a return.")
    return np.asarray(returned)


def _must_equal(got: np.ndarray, wanted: np.ndarray, traps: dict[str, np.ndarray]) -> None:
    """Say which known trap the answer fell into, or what shape it should have."""
    if got.shape == wanted.shape and np.allclose(got, wanted):
        return
    for sentence, trap in traps.items():
        if got.shape == trap.shape and np.allclose(got, trap):
            raise Wrong(sentence)
    if got.shape != wanted.shape:
        raise Wrong(f"the shape is {got.shape}, but Keras keeps this kernel as {wanted.shape}.")
    raise Wrong("the shape is right, but the values stand in other places.")


@exercise(
    "models_and_twins.convolution",
    "Write down what each of the four axes means, in both frameworks.",
    "PyTorch: (out, in, height, width). Keras: (height, width, in, out).",
    "NumPy's transpose takes, for each new axis, the number of the old one.",
)
def convolution(answer: Any) -> str:
    """A function from PyTorch's weight of a Conv2d to Keras's kernel of a Conv2D."""
    weight = np.random.default_rng(0).normal(size=(4, 3, 5, 5))
    wanted = weight.transpose(2, 3, 1, 0)
    traps = {
        "reshape moves no axis, it only cuts the same row of numbers elsewhere: transpose.": (
            weight.reshape(5, 5, 3, 4)
        ),
        "height and width have changed places: a kernel that is not symmetric shows it.": (
            weight.transpose(3, 2, 1, 0)
        ),
        "the kernel is flipped: neither framework flips it, both compute a cross-correlation.": (
            wanted[::-1, ::-1]
        ),
        "in and out have changed places.": weight.transpose(2, 3, 0, 1),
    }
    _must_equal(_array(answer, weight), wanted, traps)
    return "this is how twins carries a convolution over."


@exercise(
    "models_and_twins.flatten",
    "Flatten writes channels first in PyTorch, and channels last in Keras.",
    "Give the columns of the weight their three axes back, move the channels, flatten again.",
    "weight.reshape(out, channels, height, width), then transpose, then reshape, then .T.",
)
def flatten(answer: Any) -> str:
    """From a Linear's weight behind Flatten, (out, C*H*W), to a Dense kernel, (H*W*C, out)."""
    channels, height, width, out = 3, 2, 4, 5
    weight = np.random.default_rng(0).normal(size=(out, channels * height * width))
    blocks = weight.reshape(out, channels, height, width)
    wanted = blocks.transpose(0, 2, 3, 1).reshape(out, -1).T
    traps = {
        "that is the transpose alone: the rows are still in the order of PyTorch's Flatten.": (
            weight.T
        ),
        "the order is right, but Keras keeps (in, out): transpose at the end.": wanted.T,
        "height and width have changed places.": blocks.transpose(0, 3, 2, 1).reshape(out, -1).T,
    }
    _must_equal(_array(answer, weight, channels, height, width), wanted, traps)
    return "the first dense layer after Flatten now sees every pixel at its own weight."
