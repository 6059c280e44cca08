"""The inputs on which two models are paired and compared."""

from typing import Any

import numpy as np

from dlplay.errors import ModelError


def arrays(x: Any) -> tuple[np.ndarray, ...]:
    """Inputs as a tuple of arrays; doubles from Python lists stay what the models make of them."""
    return tuple(np.asarray(one) for one in x) if isinstance(x, tuple) else (np.asarray(x),)


def complete(keras_model: Any, example: Any) -> tuple[np.ndarray, ...]:
    """The example as given, or one drawn in the shape that a Keras model tells.

    Raises
    ------
    ModelError
        Where neither tells.
    """
    if example is not None:
        return arrays(example)
    inputs = getattr(keras_model, "inputs", None) or []
    if not inputs:
        raise ModelError(
            "The Keras model does not tell the shape of its input: give an example,"
            " dlplay.twins(torch_model, keras_model, example)."
        )
    draw = np.random.default_rng(0)
    return tuple(_drawn(draw, tuple(one.shape[1:]), str(one.dtype)) for one in inputs)


def _drawn(draw: np.random.Generator, shape: tuple[int | None, ...], dtype: str) -> np.ndarray:
    if None in shape:
        raise ModelError(
            f"The Keras model's input {shape} has a size that is not fixed: give an example,"
            " dlplay.twins(torch_model, keras_model, example)."
        )
    full = (2, *(size or 1 for size in shape))
    if "int" in dtype:
        return np.zeros(full, dtype=np.int64)
    return draw.normal(size=full)


def telling(given: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The example, or noise of its shape where it is constant: a flattened constant hides order."""
    draw = np.random.default_rng(0)
    return tuple(
        draw.normal(size=array.shape).astype(array.dtype)
        if array.dtype.kind == "f" and np.ptp(array) == 0
        else array
        for array in given
    )


def channels_last(
    keras_model: Any, given: tuple[np.ndarray, ...], layout: str | None
) -> tuple[np.ndarray, ...]:
    """Inputs with their channels last; the layout of images is told by what the model takes.

    Raises
    ------
    ModelError
        Where the layout cannot be told, or is none of the two.
    """
    if layout not in (None, "channels_last", "channels_first"):
        raise ModelError(
            f"layout is {layout!r}, but must be one of: channels_last, channels_first."
        )
    if layout == "channels_last":
        return given
    taken = getattr(keras_model, "input_shape", None)
    shapes = taken if isinstance(taken, list) else [taken] * len(given)
    return tuple(_last(array, shape, layout) for array, shape in zip(given, shapes, strict=True))


def _last(array: np.ndarray, taken: Any, layout: str | None) -> np.ndarray:
    if array.ndim < 4 or (layout is None and not isinstance(taken, tuple)):
        return array
    moved = np.moveaxis(array, 1, -1)
    if layout == "channels_first":
        return moved
    as_is, first = _fits(array.shape, taken), _fits(moved.shape, taken)
    if as_is and first and taken[-1] is not None:
        raise ModelError(
            f"The example of shape {array.shape} could have its {taken[-1]} channels first or last:"
            ' say which with layout="channels_last" or layout="channels_first".'
        )
    return moved if first and not as_is else array


def _fits(shape: tuple[int, ...], taken: tuple[int | None, ...]) -> bool:
    same = (size in (None, own) for own, size in zip(shape[1:], taken[1:], strict=False))
    return len(shape) == len(taken) and all(same)


def build(wing: Any, model: Any, given: tuple[np.ndarray, ...]) -> None:
    """Build a Keras model that has no weights yet, by calling it once.

    Raises
    ------
    ModelError
        Where the example does not go through it.
    """
    if getattr(model, "built", True) and not wing.structure.unbuilt(model):
        return
    try:
        inputs = wing.structure.as_inputs(model, given)
        model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(
            f"The Keras model is not built, and cannot be from this example: {reason}"
        ) from error
