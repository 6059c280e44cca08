"""What is added to the loss to keep weights small, in Keras."""

import keras
import tensorflow as tf
from keras import ops


def penalty(model: keras.Model, l1: float = 0.0, l2: float = 0.0) -> tf.Tensor:
    """``l1 * sum(abs(w)) + l2 * sum(w ** 2)`` over a model's kernels: no bias, no normalization.

    It is what ``keras.regularizers.L1L2`` adds to the loss; PyTorch's ``weight_decay`` of
    ``2 * l2`` has the same gradient and does not show in the loss.
    Source: https://keras.io/api/layers/regularizers/
    """
    small = ("bias", "gamma", "beta")
    kernels = [v for v in model.trainable_variables if not any(name in v.name for name in small)]
    terms = [l1 * ops.sum(ops.abs(v)) + l2 * ops.sum(ops.square(v)) for v in kernels]
    return ops.sum(ops.stack(terms)) if terms else tf.constant(0.0)
