"""Trains a Keras model for a few steps on one batch, to see where its weights go."""

from collections.abc import Callable, Iterator

import keras
import tensorflow as tf

from dlplay.keras import optimizers
from dlplay.keras.structure import mode
from dlplay.settings import Optimizer


def advance(
    model: keras.Model,
    inputs: tuple[tf.Tensor, ...],
    objective: Callable[[tf.Tensor], tf.Tensor],
    optimizer: Optimizer,
    learning_rate: float,
) -> Iterator[float]:
    """Make one step each time the next loss is asked for, in training mode with dropout off.

    The caller gives the model back as it was (``structure.kept``).

    Yields
    ------
    float
        The loss before the step, whose update the weights then have.
    """
    given = inputs[0] if len(inputs) == 1 else list(inputs)
    rule = optimizers.make(model, optimizer, learning_rate)
    while True:
        with mode(model, training=True), tf.GradientTape() as tape:
            loss = tf.add_n([objective(model(given, training=True)), *model.losses])
        variables = model.trainable_variables
        rule.apply(tape.gradient(loss, variables), variables)
        yield float(loss)
