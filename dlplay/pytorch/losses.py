"""What PyTorch minimises, with one meaning in both frameworks.

Logits and probabilities have their classes last. ``reduction`` is ``"mean"`` over all losses,
``"sum"`` or ``"none"``. Where labels weigh differently, ``"mean"`` divides by their number, as
Keras's ``fit`` does, and ``"weighted_mean"`` by the sum of their weights, as PyTorch does.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from dlplay.errors import ModelError
from dlplay.settings import Loss

#: PyTorch passes over -100 unless it is told another label; this one no data set has.
_NO_LABEL = -(2**63)

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


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
    logits: torch.Tensor,
    labels: torch.Tensor,
    smoothing: float = 0.0,
    class_weights: torch.Tensor | None = None,
    ignored: int | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
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

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
    """
    index = _NO_LABEL if ignored is None else ignored
    options: dict[str, Any] = {"ignore_index": index, "label_smoothing": smoothing}
    if logits.ndim == 2 and class_weights is None and ignored is None and reduction == "mean":
        return functional.cross_entropy(logits, labels, **options)
    if labels.is_floating_point():
        _same_shape(logits, labels)
        labels = labels.movedim(-1, 1)
    losses = functional.cross_entropy(logits.movedim(-1, 1), labels, reduction="none", **options)
    if labels.is_floating_point():
        return _reduce(losses, reduction)
    counted = labels != index
    weights = counted.to(losses.dtype)
    if class_weights is not None:
        weights = weights * class_weights[labels.where(counted, 0)]
    return _reduce(losses, reduction, weights, counted)


def binary_cross_entropy(
    logits: torch.Tensor,
    targets: torch.Tensor,
    smoothing: float = 0.0,
    positive_weight: float = 1.0,
    reduction: str = "mean",
) -> torch.Tensor:
    """Cross-entropy of single logits of any shape, with targets from 0 to 1.

    ``smoothing`` is Keras's: y becomes (1 - smoothing) * y + smoothing / 2. ``positive_weight`` is
    PyTorch's: it multiplies the loss of a positive target.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html and
    https://keras.io/api/losses/probabilistic_losses/#binarycrossentropy-class
    """
    _same_shape(logits, targets)
    targets = (1 - smoothing) * targets + smoothing / 2
    weight = logits.new_tensor(positive_weight)
    losses = functional.binary_cross_entropy_with_logits(
        logits, targets, pos_weight=weight, reduction="none"
    )
    return _reduce(losses, reduction)


def mean_squared_error(
    predictions: torch.Tensor, targets: torch.Tensor, reduction: str = "mean"
) -> torch.Tensor:
    """Squares of the differences.

    Source: https://keras.io/api/losses/regression_losses/#meansquarederror-class
    """
    _same_shape(predictions, targets)
    return _reduce(torch.square(predictions - targets), reduction)


def mean_absolute_error(
    predictions: torch.Tensor, targets: torch.Tensor, reduction: str = "mean"
) -> torch.Tensor:
    """Sizes of the differences.

    Source: https://keras.io/api/losses/regression_losses/#meanabsoluteerror-class
    """
    _same_shape(predictions, targets)
    return _reduce(torch.abs(predictions - targets), reduction)


def huber(
    predictions: torch.Tensor, targets: torch.Tensor, delta: float = 1.0, reduction: str = "mean"
) -> torch.Tensor:
    """Half a square up to ``delta``, a line from there on (Huber 1964).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.HuberLoss.html
    """
    _same_shape(predictions, targets)
    size = torch.abs(predictions - targets)
    near, far = 0.5 * size * size, delta * (size - 0.5 * delta)
    return _reduce(torch.where(size <= delta, near, far), reduction)


def smooth_l1(
    predictions: torch.Tensor, targets: torch.Tensor, beta: float = 1.0, reduction: str = "mean"
) -> torch.Tensor:
    """Huber's loss divided by ``beta`` (Girshick 2015); Keras has no name for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.SmoothL1Loss.html
    """
    losses = huber(predictions, targets, beta, "none") / beta
    return _reduce(losses, reduction)


def kl_divergence(
    predictions: torch.Tensor, targets: torch.Tensor, reduction: str = "mean"
) -> torch.Tensor:
    """Kullback-Leibler divergence of probabilities (batch, ..., classes) from the targets'.

    Summed over the classes, then reduced: PyTorch's ``"batchmean"`` for (batch, classes). Both
    are held between 1e-7 and 1, as Keras does.
    Source: https://keras.io/api/losses/probabilistic_losses/#kldivergence-class
    """
    _same_shape(predictions, targets)
    targets, predictions = (torch.clamp(p, 1e-7, 1.0) for p in (targets, predictions))
    losses = torch.sum(targets * torch.log(targets / predictions), dim=-1)
    return _reduce(losses, reduction)


def poisson(
    predictions: torch.Tensor, targets: torch.Tensor, reduction: str = "mean"
) -> torch.Tensor:
    """Negative log-likelihood of counts at predicted rates, without the targets' own term.

    Source: https://keras.io/api/losses/probabilistic_losses/#poisson-class
    """
    _same_shape(predictions, targets)
    return _reduce(predictions - targets * torch.log(predictions + 1e-7), reduction)


def hinge(
    predictions: torch.Tensor, targets: torch.Tensor, reduction: str = "mean"
) -> torch.Tensor:
    """What is missing to a margin of 1, with targets of -1 and 1.

    Source: https://keras.io/api/losses/hinge_losses/#hinge-class
    """
    _same_shape(predictions, targets)
    return _reduce(torch.relu(1 - targets * predictions), reduction)


def cosine_similarity(
    predictions: torch.Tensor, targets: torch.Tensor, reduction: str = "mean"
) -> torch.Tensor:
    """The negative cosine of the angle between vectors (batch, ..., features).

    PyTorch's ``cosine_embedding_loss`` is larger by 1.
    Source: https://keras.io/api/losses/regression_losses/#cosinesimilarity-class
    """
    _same_shape(predictions, targets)
    losses = -functional.cosine_similarity(predictions, targets, dim=-1, eps=1e-12)
    return _reduce(losses, reduction)


_LOSSES: dict[str, Callable[..., torch.Tensor]] = {
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
    losses: torch.Tensor,
    reduction: str,
    weights: torch.Tensor | None = None,
    counted: torch.Tensor | None = None,
) -> torch.Tensor:
    if weights is not None:
        losses = losses * weights
    match reduction:
        case "none":
            return losses
        case "sum":
            return losses.sum()
        case "mean":
            return losses.mean() if counted is None else losses.sum() / counted.sum()
        case "weighted_mean" if weights is not None:
            return losses.sum() / weights.sum()
    raise ModelError(_no_reduction(reduction))


def _same_shape(predictions: torch.Tensor, targets: torch.Tensor) -> None:
    if predictions.shape != targets.shape:
        shapes = f"{tuple(predictions.shape)} and {tuple(targets.shape)}"
        raise ModelError(f"Predictions and targets have the shapes {shapes}: give both the same.")


def _no_reduction(reduction: str) -> str:
    return (
        f"There is no reduction {reduction!r} here: choose mean, sum or none, or weighted_mean for"
        " labels that are whole numbers."
    )
