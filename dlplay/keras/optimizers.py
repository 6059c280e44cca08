"""Keras's optimizers from settings."""

from typing import Any

import keras

from dlplay.errors import SettingError
from dlplay.keras import reconciled
from dlplay.settings import Optimizer

_CLIPPING = {"global_norm": "global_clipnorm", "norm": "clipnorm", "value": "clipvalue"}


def make(
    model: keras.Model, optimizer: Optimizer, learning_rate: float
) -> keras.optimizers.Optimizer:
    """Make the optimizer for a model's trainable variables.

    ``optimizer.like`` tells whose formula it follows: Keras's own, in Keras's own classes, or
    PyTorch's. Keras's Nadam has no ``momentum_decay``: it is fixed at 1.

    Raises
    ------
    SettingError
        For Keras's formula where Keras has none: SGD with dampening.

    Source: https://keras.io/api/optimizers/
    """
    variables = model.trainable_variables
    if optimizer.like == "pytorch":
        return reconciled.optimizer(variables, optimizer, learning_rate)
    if optimizer.name == "sgd" and optimizer.dampening:
        raise SettingError(
            "Keras's SGD has no dampening: set Optimizer.dampening to 0 or Optimizer.like to"
            " 'pytorch'."
        )
    made = _stock(optimizer, learning_rate)
    if optimizer.decayed == "kernels":
        made.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    made.build(variables)
    return made


def set_learning_rate(optimizer: keras.optimizers.Optimizer, learning_rate: float) -> None:
    """Set the learning rate, from the next step on."""
    optimizer.learning_rate.assign(learning_rate)


def _stock(optimizer: Optimizer, learning_rate: float) -> keras.optimizers.Optimizer:
    table: dict[str, tuple[Any, Any]] = {
        "sgd": (keras.optimizers.SGD, _sgd),
        "adam": (keras.optimizers.Adam, _adam),
        "adamw": (keras.optimizers.AdamW, _adam),
        "rmsprop": (keras.optimizers.RMSprop, _rmsprop),
        "adagrad": (keras.optimizers.Adagrad, _adagrad),
        "adadelta": (keras.optimizers.Adadelta, _adadelta),
        "adamax": (keras.optimizers.Adamax, _betas),
        "nadam": (keras.optimizers.Nadam, _betas),
        "lion": (keras.optimizers.Lion, _lion),
    }
    kind, options = table[optimizer.name]
    shared: dict[str, Any] = {}
    if optimizer.weight_decay or optimizer.name == "adamw":
        shared["weight_decay"] = optimizer.weight_decay
    if optimizer.clipping != "none":
        shared[_CLIPPING[optimizer.clipping]] = optimizer.clip_at
    return kind(learning_rate, **shared, **options(optimizer))


def _sgd(optimizer: Optimizer) -> dict[str, Any]:
    return {
        "momentum": optimizer.momentum,
        "nesterov": optimizer.nesterov and optimizer.momentum > 0,
    }


def _lion(optimizer: Optimizer) -> dict[str, Any]:
    return {"beta_1": optimizer.beta_1, "beta_2": optimizer.beta_2}


def _betas(optimizer: Optimizer) -> dict[str, Any]:
    return {**_lion(optimizer), "epsilon": optimizer.epsilon}


def _adam(optimizer: Optimizer) -> dict[str, Any]:
    return {**_betas(optimizer), "amsgrad": optimizer.amsgrad}


def _rmsprop(optimizer: Optimizer) -> dict[str, Any]:
    return {
        "rho": optimizer.beta_2,
        "epsilon": optimizer.epsilon,
        "centered": optimizer.centered,
        "momentum": optimizer.rmsprop_momentum,
    }


def _adagrad(optimizer: Optimizer) -> dict[str, Any]:
    start = optimizer.initial_accumulator
    return {"epsilon": optimizer.epsilon, "initial_accumulator_value": start}


def _adadelta(optimizer: Optimizer) -> dict[str, Any]:
    return {"rho": optimizer.beta_2, "epsilon": optimizer.epsilon}
