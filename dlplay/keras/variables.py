"""Canonical arrays to and from Keras's variables."""

from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dlplay.traces import Slot


def values(slot: Slot) -> np.ndarray:
    """The canonical array that a slot holds now: a copy, in the variable's own type."""
    return np.array(slot.read(*(_array(variable.value) for variable in slot.variables)))


def assign(pairs: Iterable[tuple[Slot, np.ndarray]]) -> None:
    """Write canonical arrays into their slots; shapes have been checked before."""
    for slot, array in pairs:
        for variable, part in zip(slot.variables, slot.split(array), strict=True):
            variable.assign(part)


def gradient(slot: Slot, gradients: Mapping[int, Any]) -> np.ndarray | None:
    """The canonical gradient of a slot, from the gradients of the variables by their id."""
    found = [gradients.get(id(variable)) for variable in slot.variables]
    return slot.gradient(None if g is None else _array(tf.convert_to_tensor(g)) for g in found)


def parameters(slot: Slot) -> list[keras.Variable]:
    """The variables of a slot."""
    return list(slot.variables)


def _array(tensor: Any) -> np.ndarray:
    return (tf.cast(tensor, tf.float32) if tensor.dtype == tf.bfloat16 else tensor).numpy()
