"""Clips gradients, by PyTorch's formula or by Keras's."""

import tensorflow as tf

from dlplay.settings import Optimizer

#: What ``clip_grad_norm_`` adds to the norm. Keras adds nothing.
EPSILON = 1e-6


def clip(gradients: list[tf.Tensor], optimizer: Optimizer, like: str) -> list[tf.Tensor]:
    """Clip gradients as ``optimizer.clipping`` says, by the formula of ``like``.

    Parameters
    ----------
    gradients : list of tf.Tensor
        Of any shapes and one floating-point type, dense.
    like : str
        ``"pytorch"`` scales by ``clip_at / (norm + 1e-6)`` where that is below 1, ``"keras"`` by
        ``clip_at / norm``. By value the two are the same.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html and
    ``clip_by_global_norm`` in keras/src/optimizers/base_optimizer.py; ``tf.clip_by_norm``.
    """
    at = optimizer.clip_at
    match optimizer.clipping:
        case "global_norm":
            scale = _scale(gradients, at, like)
            return [gradient * scale for gradient in gradients]
        case "norm":
            return [gradient * _scale([gradient], at, like) for gradient in gradients]
        case "value":
            return [tf.clip_by_value(gradient, -at, at) for gradient in gradients]
    return gradients


def _scale(gradients: list[tf.Tensor], at: float, like: str) -> tf.Tensor:
    norm = tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(gradient)) for gradient in gradients]))
    ratio = at / (norm + (EPSILON if like == "pytorch" else 0.0))
    # Not tf.minimum(ratio, 1): a norm that is not a number must show in every gradient.
    return tf.where(ratio > 1.0, tf.ones_like(ratio), ratio)
