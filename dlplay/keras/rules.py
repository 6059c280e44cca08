"""PyTorch's update rules as functions of TensorFlow's tensors.

Each takes a weight, its gradient, the state that goes with them, the learning rate and the number
of the step (from 1), both float64, and the settings; it returns the new weight and the new state.
Numbers are combined in float64, as PyTorch does in Python,
and meet the weight's own type at the end.

Source of the formulas: the algorithm boxes of https://docs.pytorch.org/docs/stable/optim.html,
with the order of operations of ``_single_tensor_*`` in torch/optim.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dlplay.settings import Optimizer

State = dict[str, tf.Tensor]
Rule = Callable[[tf.Tensor, tf.Tensor, State, Any, Any, Optimizer], tuple[tf.Tensor, State]]


def sgd(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """The buffer holds gradients; the first one enters undamped (Sutskever et al. 2013)."""
    rate = tf.cast(rate, weight.dtype)
    if not values.momentum:
        return weight - rate * gradient, state
    one, kept = (tf.constant(number, weight.dtype) for number in (1.0, 1 - values.dampening))
    buffer = values.momentum * state["buffer"] + tf.where(step > 1, kept, one) * gradient
    move = gradient + values.momentum * buffer if values.nesterov else buffer
    return weight - rate * move, {"buffer": buffer}


def adam(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """Epsilon joins after the bias correction (Kingma and Ba 2015, algorithm 1)."""
    first = _blend(state["first"], gradient, values.beta_1)
    second = values.beta_2 * state["second"] + (1 - values.beta_2) * gradient * gradient
    new = {"first": first, "second": second}
    if values.amsgrad:
        second = new["largest"] = tf.maximum(state["largest"], second)
    size = tf.cast(rate / (1 - values.beta_1**step), weight.dtype)
    correction = tf.cast(tf.sqrt(1 - values.beta_2**step), weight.dtype)
    return weight - size * first / (tf.sqrt(second) / correction + values.epsilon), new


def rmsprop(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """Epsilon outside of the square root (Hinton 2012, lecture 6e; Graves 2013)."""
    rate = tf.cast(rate, weight.dtype)
    second = values.beta_2 * state["second"] + (1 - values.beta_2) * gradient * gradient
    new, spread = {"second": second}, second
    if values.centered:
        new["first"] = _blend(state["first"], gradient, values.beta_2)
        spread = second - new["first"] * new["first"]
    move = gradient / (tf.sqrt(spread) + values.epsilon)
    if values.rmsprop_momentum:
        move = new["buffer"] = values.rmsprop_momentum * state["buffer"] + move
    return weight - rate * move, new


def adagrad(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """Epsilon outside of the square root (Duchi et al. 2011)."""
    total = state["total"] + gradient * gradient
    move = gradient / (tf.sqrt(total) + values.epsilon)
    return weight - tf.cast(rate, weight.dtype) * move, {"total": total}


def adadelta(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """Epsilon inside of both square roots (Zeiler 2012)."""
    rho = values.beta_2
    second = rho * state["second"] + (1 - rho) * gradient * gradient
    move = tf.sqrt(state["moves"] + values.epsilon) / tf.sqrt(second + values.epsilon) * gradient
    moves = rho * state["moves"] + (1 - rho) * move * move
    return weight - tf.cast(rate, weight.dtype) * move, {"second": second, "moves": moves}


def adamax(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """Epsilon is added to each gradient's size (Kingma and Ba 2015, section 7.1)."""
    first = _blend(state["first"], gradient, values.beta_1)
    largest = tf.maximum(values.beta_2 * state["largest"], tf.abs(gradient) + values.epsilon)
    size = tf.cast(rate / (1 - values.beta_1**step), weight.dtype)
    return weight - size * first / largest, {"first": first, "largest": largest}


def nadam(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """Momentum grows with ``momentum_decay`` (Dozat 2016).

    The product of momenta is kept in float32 whatever the weights are, as ``torch.optim.NAdam``
    keeps it in PyTorch's default type.
    """
    now = values.beta_1 * (1 - 0.5 * 0.96 ** (step * values.momentum_decay))
    then = values.beta_1 * (1 - 0.5 * 0.96 ** ((step + 1) * values.momentum_decay))
    product = state["product"] * tf.cast(now, tf.float32)
    exact = tf.cast(product, tf.float64)
    first = _blend(state["first"], gradient, values.beta_1)
    second = values.beta_2 * state["second"] + (1 - values.beta_2) * gradient * gradient
    correction = tf.cast(1 - values.beta_2**step, weight.dtype)
    below = tf.sqrt(second / correction) + values.epsilon
    fresh = tf.cast(rate * (1 - now) / (1 - exact), weight.dtype)
    old = tf.cast(rate * then / (1 - exact * then), weight.dtype)
    weight = weight - fresh * gradient / below - old * first / below
    return weight, {"first": first, "second": second, "product": product}


def lion(
    weight: tf.Tensor, gradient: tf.Tensor, state: State, rate: Any, step: Any, values: Optimizer
) -> tuple[tf.Tensor, State]:
    """Only the sign of the blended gradient counts (Chen et al. 2023, algorithm 2)."""
    move = tf.sign(values.beta_1 * state["first"] + (1 - values.beta_1) * gradient)
    first = values.beta_2 * state["first"] + (1 - values.beta_2) * gradient
    return weight - tf.cast(rate, weight.dtype) * move, {"first": first}


RULES: dict[str, Rule] = {
    "sgd": sgd,
    "adam": adam,
    "adamw": adam,
    "rmsprop": rmsprop,
    "adagrad": adagrad,
    "adadelta": adadelta,
    "adamax": adamax,
    "nadam": nadam,
    "lion": lion,
}


def kept(values: Optimizer) -> tuple[str, ...]:
    """What the rule of ``values`` keeps for each weight from step to step."""
    match values.name:
        case "sgd":
            return ("buffer",) if values.momentum else ()
        case "adam" | "adamw":
            return ("first", "second", "largest") if values.amsgrad else ("first", "second")
        case "rmsprop":
            more = {"first": values.centered, "buffer": values.rmsprop_momentum}
            return ("second", *(name for name, wanted in more.items() if wanted))
    return {
        "adagrad": ("total",),
        "adadelta": ("second", "moves"),
        "adamax": ("first", "largest"),
        "nadam": ("first", "second", "product"),
        "lion": ("first",),
    }[values.name]


def start(values: Optimizer, name: str) -> float:
    """What that starts from."""
    return {"total": values.initial_accumulator, "product": 1.0}.get(name, 0.0)


def _blend(old: tf.Tensor, new: tf.Tensor, beta: float) -> tf.Tensor:
    return old + (1 - beta) * (new - old)
