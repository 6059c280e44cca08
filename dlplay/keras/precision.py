"""In which floating-point type Keras computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from dlplay.settings import Precision


def dtype(precision: Precision) -> tf.DType:
    """The type in which weights and inputs are kept."""
    return tf.float64 if precision.name == "float64" else tf.float32


@contextmanager
def scope(precision: Precision, device: str) -> Iterator[None]:
    """A context in which a model is made and called: a device, and a dtype policy for its layers.

    A layer keeps the policy under which it was made. The policy outside comes back at the end.
    Source: https://keras.io/api/mixed_precision/policy/
    """
    before = keras.config.dtype_policy()
    mixed = precision.name == "bfloat16"
    keras.config.set_dtype_policy("mixed_bfloat16" if mixed else precision.name)
    try:
        with tf.device(device):
            yield
    finally:
        keras.config.set_dtype_policy(before)
