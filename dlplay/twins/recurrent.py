"""Recurrent layers of the canonical form in NumPy, one direction each: the whole sequence."""

from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Step = Callable[[np.ndarray, np.ndarray], np.ndarray]

_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 0.5 * (1 + np.tanh(x / 2)),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "linear": lambda x: x,
}


def simple_rnn(x: np.ndarray, options: dict[str, Any], arrays: Arrays) -> np.ndarray | None:
    """Elman's network (1990)."""
    activation = _FUNCTIONS.get(options["activation"])
    if activation is None:
        return None

    def step(inputs: np.ndarray, state: np.ndarray) -> np.ndarray:
        return activation(inputs + state @ arrays["recurrent_kernel"])

    inputs = x @ arrays["kernel"] + arrays.get("bias", 0.0)
    return _run(inputs, len(arrays["recurrent_kernel"]), step, options["go_backwards"])


def lstm(x: np.ndarray, options: dict[str, Any], arrays: Arrays) -> np.ndarray | None:
    """Gates in the order input, forget, cell, output."""
    activation = _FUNCTIONS.get(options["activation"])
    gate = _FUNCTIONS.get(options["recurrent_activation"])
    if activation is None or gate is None:
        return None
    units = len(arrays["recurrent_kernel"])
    cell = np.zeros((len(x), units))

    def step(inputs: np.ndarray, state: np.ndarray) -> np.ndarray:
        nonlocal cell
        i, f, c, o = np.split(inputs + state @ arrays["recurrent_kernel"], 4, axis=1)
        cell = gate(f) * cell + gate(i) * activation(c)
        return gate(o) * activation(cell)

    inputs = x @ arrays["kernel"] + arrays.get("bias", 0.0)
    return _run(inputs, units, step, options["go_backwards"])


def gru(x: np.ndarray, options: dict[str, Any], arrays: Arrays) -> np.ndarray | None:
    """Gates in the order update, reset, new; ``reset_after`` as Cho et al. 2014, version 3."""
    activation = _FUNCTIONS.get(options["activation"])
    gate = _FUNCTIONS.get(options["recurrent_activation"])
    if activation is None or gate is None:
        return None
    kernel, units = arrays["recurrent_kernel"], len(arrays["recurrent_kernel"])
    bias = np.atleast_2d(arrays.get("bias", np.zeros((2, 3 * units))))
    after = np.zeros(3 * units) if len(bias) == 1 else bias[1]

    def step(inputs: np.ndarray, state: np.ndarray) -> np.ndarray:
        z, r, h = np.split(inputs, 3, axis=1)
        inner = state @ kernel + after
        z, r = gate(z + inner[:, :units]), gate(r + inner[:, units : 2 * units])
        if options["reset_after"]:
            new = activation(h + r * inner[:, 2 * units :])
        else:
            new = activation(h + (r * state) @ kernel[:, 2 * units :])
        return z * state + (1 - z) * new

    return _run(x @ arrays["kernel"] + bias[0], units, step, options["go_backwards"])


def _run(inputs: np.ndarray, units: int, step: Step, backwards: bool) -> np.ndarray:
    """(batch, time, units); a backward run's outputs stand at the times they belong to."""
    state, states = np.zeros((len(inputs), units)), []
    times = range(inputs.shape[1])
    for time in reversed(times) if backwards else times:
        state = step(inputs[:, time], state)
        states.append(state)
    return np.stack(states[::-1] if backwards else states, axis=1)
