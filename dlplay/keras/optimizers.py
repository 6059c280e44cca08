"""Keras's optimizers from settings."""

import keras

from dlplay.settings import Optimizer


def make(
    model: keras.Model, optimizer: Optimizer, learning_rate: float
) -> keras.optimizers.Optimizer:
    """Make the optimizer for a model's trainable variables.

    Source: https://keras.io/api/optimizers/
    """
    made = _make(optimizer, learning_rate)
    made.build(model.trainable_variables)
    return made


def _make(optimizer: Optimizer, learning_rate: float) -> keras.optimizers.Optimizer:
    match optimizer.name:
        case "sgd":
            momentum = optimizer.momentum
            nesterov = optimizer.nesterov and momentum > 0
            return keras.optimizers.SGD(learning_rate, momentum=momentum, nesterov=nesterov)
        case "rmsprop":
            return keras.optimizers.RMSprop(
                learning_rate, rho=optimizer.beta_2, epsilon=optimizer.epsilon
            )
        case "adamw":
            return keras.optimizers.AdamW(
                learning_rate,
                weight_decay=optimizer.weight_decay,
                beta_1=optimizer.beta_1,
                beta_2=optimizer.beta_2,
                epsilon=optimizer.epsilon,
            )
    return keras.optimizers.Adam(
        learning_rate,
        beta_1=optimizer.beta_1,
        beta_2=optimizer.beta_2,
        epsilon=optimizer.epsilon,
    )


def set_learning_rate(optimizer: keras.optimizers.Optimizer, learning_rate: float) -> None:
    """Set the learning rate, from the next step on."""
    optimizer.learning_rate.assign(learning_rate)
