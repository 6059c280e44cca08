"""What Keras minimises."""

import keras
import tensorflow as tf


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Mean cross-entropy of logits (batch, classes) against labels (batch,), in nats.

    Source: https://keras.io/api/ops/nn/#sparse_categorical_crossentropy-function
    """
    losses = keras.ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    return keras.ops.mean(losses)
