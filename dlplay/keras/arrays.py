"""NumPy arrays into TensorFlow tensors and back; the layout stays channels-last."""

import numpy as np
import tensorflow as tf

from dlplay.keras.precision import dtype
from dlplay.settings import Precision


def to_tensor(array: np.ndarray, precision: Precision, device: str) -> tf.Tensor:
    """Move an array to a device.

    Floating-point arrays take the precision's type; whole numbers become int64.
    """
    with tf.device(device):
        if array.dtype.kind == "f":
            return tf.convert_to_tensor(array.astype(dtype(precision).as_numpy_dtype))
        return tf.convert_to_tensor(np.asarray(array, dtype=np.int64))


def to_numpy(tensor: tf.Tensor) -> np.ndarray:
    """Fetch a tensor; bfloat16 becomes float32."""
    return (tf.cast(tensor, tf.float32) if tensor.dtype == tf.bfloat16 else tensor).numpy()
