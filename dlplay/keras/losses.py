"""What Keras minimises, with one meaning in both frameworks.

Logits and probabilities have their classes last. ``reduction`` is ``"mean"`` over all losses,
``"sum"`` or ``"none"``. Where labels weigh differently, ``"mean"`` divides by their number, as
Keras's ``fit`` does, and ``"weighted_mean"`` by the sum of their weights, as PyTorch does.
"""

from collections.abc import Callable
from functools import partial

import tensorflow as tf
from keras import ops

from dlplay.errors import ModelError
from dlplay.settings import Loss

Function = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def make(loss: Loss) -> Function:
    """The function of (predictions, targets) that the settings describe."""
    options = {
        "cross_entropy": {"smoothing": loss.smoothing},
        "binary_cross_entropy": {"smoothing": loss.smoothing},
        "huber": {"delta": loss.delta},
        "smooth_l1": {"beta": loss.delta},
    }.get(loss.name, {})
    return partial(_LOSSES[loss.name], reduction=loss.reduction, **options)


def cross_entropy(
    logits: tf.Tensor,
    labels: tf.Tensor,
    smoothing: float = 0.0,
    class_weights: tf.Tensor | None = None,
    ignored: int | None = None,
    reduction: str = "mean",
) -> tf.Tensor:
    """Cross-entropy of logits (batch, ..., classes), in nats.

    Parameters
    ----------
    labels
        Whole numbers (batch, ...), or probabilities of the shape of the logits.
    smoothing
        y becomes (1 - smoothing) * y + smoothing / classes.
    class_weights
        (classes,): multiplies each example's loss by the weight of its label; whole numbers only.
    ignored
        The label of examples that do not count, neither in a sum nor in a mean.

    Source: https://keras.io/api/ops/nn/#sparse_categorical_crossentropy-function
    """
    if labels.dtype.is_floating:
        return _reduce(_smoothed(logits, labels, smoothing), reduction)
    known = labels if ignored is None else tf.where(labels == ignored, 0, labels)
    if smoothing:
        labels_as_shares = tf.one_hot(known, logits.shape[-1], dtype=logits.dtype)
        losses = _smoothed(logits, labels_as_shares, smoothing)
    else:
        losses = ops.sparse_categorical_crossentropy(known, logits, from_logits=True)
    if class_weights is None and ignored is None and reduction != "weighted_mean":
        return _reduce(losses, reduction)
    counted = tf.ones_like(known) if ignored is None else labels != ignored
    weights = counted = tf.cast(counted, losses.dtype)
    if class_weights is not None:
        weights = counted * tf.gather(class_weights, known)
    return _reduce(losses, reduction, weights, counted)


def binary_cross_entropy(
    logits: tf.Tensor,
    targets: tf.Tensor,
    smoothing: float = 0.0,
    positive_weight: float = 1.0,
    reduction: str = "mean",
) -> tf.Tensor:
    """Cross-entropy of single logits of any shape, with targets from 0 to 1.

    ``smoothing`` is Keras's: y becomes (1 - smoothing) * y + smoothing / 2. ``positive_weight`` is
    PyTorch's: it multiplies the loss of a positive target.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html and
    https://keras.io/api/losses/probabilistic_losses/#binarycrossentropy-class
    """
    _same_shape(logits, targets)
    targets = (1 - smoothing) * targets + smoothing / 2
    positive = positive_weight * targets * ops.softplus(-logits)
    losses = positive + (1 - targets) * ops.softplus(logits)
    return _reduce(losses, reduction)


def mean_squared_error(
    predictions: tf.Tensor, targets: tf.Tensor, reduction: str = "mean"
) -> tf.Tensor:
    """Squares of the differences.

    Source: https://keras.io/api/losses/regression_losses/#meansquarederror-class
    """
    _same_shape(predictions, targets)
    return _reduce(ops.square(predictions - targets), reduction)


def mean_absolute_error(
    predictions: tf.Tensor, targets: tf.Tensor, reduction: str = "mean"
) -> tf.Tensor:
    """Sizes of the differences.

    Source: https://keras.io/api/losses/regression_losses/#meanabsoluteerror-class
    """
    _same_shape(predictions, targets)
    return _reduce(ops.abs(predictions - targets), reduction)


def huber(
    predictions: tf.Tensor, targets: tf.Tensor, delta: float = 1.0, reduction: str = "mean"
) -> tf.Tensor:
    """Half a square up to ``delta``, a line from there on (Huber 1964).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.HuberLoss.html
    """
    _same_shape(predictions, targets)
    size = ops.abs(predictions - targets)
    near, far = 0.5 * size * size, delta * (size - 0.5 * delta)
    return _reduce(ops.where(size <= delta, near, far), reduction)


def smooth_l1(
    predictions: tf.Tensor, targets: tf.Tensor, beta: float = 1.0, reduction: str = "mean"
) -> tf.Tensor:
    """Huber's loss divided by ``beta`` (Girshick 2015); Keras has no name for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.SmoothL1Loss.html
    """
    losses = huber(predictions, targets, beta, "none") / beta
    return _reduce(losses, reduction)


def kl_divergence(predictions: tf.Tensor, targets: tf.Tensor, reduction: str = "mean") -> tf.Tensor:
    """Kullback-Leibler divergence of probabilities (batch, ..., classes) from the targets'.

    Summed over the classes, then reduced: PyTorch's ``"batchmean"`` for (batch, classes). Both
    are held between 1e-7 and 1, as Keras does.
    Source: https://keras.io/api/losses/probabilistic_losses/#kldivergence-class
    """
    _same_shape(predictions, targets)
    targets, predictions = (ops.clip(p, 1e-7, 1.0) for p in (targets, predictions))
    losses = ops.sum(targets * ops.log(targets / predictions), axis=-1)
    return _reduce(losses, reduction)


def poisson(predictions: tf.Tensor, targets: tf.Tensor, reduction: str = "mean") -> tf.Tensor:
    """Negative log-likelihood of counts at predicted rates, without the targets' own term.

    Source: https://keras.io/api/losses/probabilistic_losses/#poisson-class
    """
    _same_shape(predictions, targets)
    return _reduce(predictions - targets * ops.log(predictions + 1e-7), reduction)


def hinge(predictions: tf.Tensor, targets: tf.Tensor, reduction: str = "mean") -> tf.Tensor:
    """What is missing to a margin of 1, with targets of -1 and 1.

    Source: https://keras.io/api/losses/hinge_losses/#hinge-class
    """
    _same_shape(predictions, targets)
    return _reduce(ops.relu(1 - targets * predictions), reduction)


def cosine_similarity(
    predictions: tf.Tensor, targets: tf.Tensor, reduction: str = "mean"
) -> tf.Tensor:
    """The negative cosine of the angle between vectors (batch, ..., features).

    PyTorch's ``cosine_embedding_loss`` is larger by 1.
    Source: https://keras.io/api/losses/regression_losses/#cosinesimilarity-class
    """
    _same_shape(predictions, targets)
    unit = [ops.normalize(vectors, axis=-1) for vectors in (predictions, targets)]
    losses = -ops.sum(unit[0] * unit[1], axis=-1)
    return _reduce(losses, reduction)


_LOSSES: dict[str, Callable[..., tf.Tensor]] = {
    "cross_entropy": cross_entropy,
    "binary_cross_entropy": binary_cross_entropy,
    "mean_squared_error": mean_squared_error,
    "mean_absolute_error": mean_absolute_error,
    "huber": huber,
    "smooth_l1": smooth_l1,
    "kl_divergence": kl_divergence,
    "poisson": poisson,
    "hinge": hinge,
    "cosine_similarity": cosine_similarity,
}


def _reduce(
    losses: tf.Tensor,
    reduction: str,
    weights: tf.Tensor | None = None,
    counted: tf.Tensor | None = None,
) -> tf.Tensor:
    if weights is not None:
        losses = losses * weights
    match reduction:
        case "none":
            return losses
        case "sum":
            return ops.sum(losses)
        case "mean":
            return ops.mean(losses) if counted is None else ops.sum(losses) / ops.sum(counted)
        case "weighted_mean" if weights is not None:
            return ops.sum(losses) / ops.sum(weights)
    raise ModelError(_no_reduction(reduction))


def _smoothed(logits: tf.Tensor, shares: tf.Tensor, smoothing: float) -> tf.Tensor:
    _same_shape(logits, shares)
    shares = (1 - smoothing) * shares + smoothing / logits.shape[-1]
    return ops.categorical_crossentropy(shares, logits, from_logits=True)


def _same_shape(predictions: tf.Tensor, targets: tf.Tensor) -> None:
    if not predictions.shape.is_compatible_with(targets.shape):
        shapes = f"{tuple(predictions.shape)} and {tuple(targets.shape)}"
        raise ModelError(f"Predictions and targets have the shapes {shapes}: give both the same.")


def _no_reduction(reduction: str) -> str:
    return (
        f"There is no reduction {reduction!r} here: choose mean, sum or none, or weighted_mean for"
        " labels that are whole numbers."
    )
