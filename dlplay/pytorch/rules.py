"""Keras's update rules as functions of PyTorch's tensors.

Each takes a weight, its gradient, the state that goes with them, the learning rate and the number
of the step (from 1), and the settings; it returns the new weight and the new state.

Stock Keras rounds some numbers to float32 even where the weights are float64: those that it casts
(``keras.ops.cast(0.9, "float64")`` is 0.8999999761581421) and the learning rate, which is a
variable of type ``floatx``. ``rounded`` does the same, at the same places.

Source of the formulas: ``update_step`` of each class in keras/src/optimizers.
"""

from collections.abc import Callable

import torch

from dlplay.settings import Optimizer
from dlplay.settings.optimizers import rounded

State = dict[str, torch.Tensor]
Rule = Callable[
    [torch.Tensor, torch.Tensor, State, float, int, Optimizer], tuple[torch.Tensor, State]
]


def sgd(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """The velocity holds the learning rate times gradients (Sutskever et al. 2013)."""
    if not values.momentum:
        return weight - rate * gradient, state
    momentum = rounded(values.momentum)
    velocity = momentum * state["buffer"] - rate * gradient
    move = momentum * velocity - rate * gradient if values.nesterov else velocity
    return weight + move, {"buffer": velocity}


def adam(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """Epsilon joins before the bias correction (Kingma and Ba 2015, end of section 2)."""
    first = _blend(state["first"], gradient, values.beta_1)
    second = _blend(state["second"], gradient * gradient, values.beta_2)
    new = {"first": first, "second": second}
    if values.amsgrad:
        second = new["largest"] = torch.maximum(state["largest"], second)
    size = rate * (1 - _power(weight, values.beta_2, step)).sqrt()
    size = size / (1 - _power(weight, values.beta_1, step))
    return weight - first * size / (second.sqrt() + values.epsilon), new


def rmsprop(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """Epsilon inside of the square root (Hinton 2012, lecture 6e; Graves 2013)."""
    rho = values.beta_2
    second = rho * state["second"] + (1 - rho) * gradient * gradient
    new, spread = {"second": second}, second
    if values.centered:
        new["first"] = rho * state["first"] + (1 - rho) * gradient
        spread = second - new["first"] * new["first"]
    move = rate * gradient / (spread + values.epsilon).sqrt()
    if values.rmsprop_momentum:
        move = new["buffer"] = values.rmsprop_momentum * state["buffer"] + move
    return weight - move, new


def adagrad(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """Epsilon inside of the square root (Duchi et al. 2011)."""
    total = state["total"] + gradient * gradient
    return weight - rate * gradient / (total + values.epsilon).sqrt(), {"total": total}


def adadelta(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """Epsilon inside of both square roots (Zeiler 2012)."""
    rho = values.beta_2
    second = rho * state["second"] + (1 - rho) * gradient * gradient
    move = (state["moves"] + values.epsilon).sqrt() * gradient / (second + values.epsilon).sqrt()
    moves = rho * state["moves"] + (1 - rho) * move * move
    return weight - rate * move, {"second": second, "moves": moves}


def adamax(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """Epsilon is added to the largest size (Kingma and Ba 2015, section 7.1)."""
    first = _blend(state["first"], gradient, values.beta_1)
    largest = torch.maximum(values.beta_2 * state["largest"], gradient.abs())
    below = (1 - _power(weight, values.beta_1, step)) * (largest + values.epsilon)
    return weight - rate * first / below, {"first": first, "largest": largest}


def nadam(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """Momentum grows at a fixed pace (Dozat 2016); ``momentum_decay`` is not used."""
    beta_1, beta_2 = rounded(values.beta_1), rounded(values.beta_2)
    now = beta_1 * (1 - 0.5 * _power(weight, 0.96, step))
    then = beta_1 * (1 - 0.5 * _power(weight, 0.96, step + 1))
    exact = weight.new_tensor(0.96).pow(step)  # Keras casts 0.96 above, and not here
    product = state["product"] * values.beta_1 * (1 - 0.5 * exact)
    first = _blend(state["first"], gradient, beta_1)
    second = _blend(state["second"], gradient * gradient, beta_2)
    ahead = then * first / (1 - product * then) + (1 - now) * gradient / (1 - product)
    below = (second / (1 - _power(weight, beta_2, step))).sqrt() + values.epsilon
    new = {"first": first, "second": second, "product": product}
    return weight - ahead * rate / below, new


def lion(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    state: State,
    rate: float,
    step: int,
    values: Optimizer,
) -> tuple[torch.Tensor, State]:
    """Only the sign of the blended gradient counts (Chen et al. 2023, algorithm 2)."""
    move = torch.sign(values.beta_1 * state["first"] + (1 - values.beta_1) * gradient)
    first = values.beta_2 * state["first"] + (1 - values.beta_2) * gradient
    return weight - rate * move, {"first": first}


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
    return {"total": rounded(values.initial_accumulator), "product": 1.0}.get(name, 0.0)


def _blend(old: torch.Tensor, new: torch.Tensor, beta: float) -> torch.Tensor:
    return old + (1 - beta) * (new - old)


def _power(weight: torch.Tensor, base: float, step: int) -> torch.Tensor:
    """A power as Keras takes it: of a rounded base, in the weight's own type."""
    return weight.new_tensor(rounded(base)).pow(step)
