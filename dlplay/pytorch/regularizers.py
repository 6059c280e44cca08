"""What is added to the loss to keep weights small, in PyTorch."""

import torch
from torch import nn


def penalty(model: nn.Module, l1: float = 0.0, l2: float = 0.0) -> torch.Tensor:
    """``l1 * sum(abs(w)) + l2 * sum(w ** 2)`` over a model's kernels: no bias, no normalization.

    It is what ``keras.regularizers.L1L2`` adds to the loss; PyTorch's ``weight_decay`` of
    ``2 * l2`` has the same gradient and does not show in the loss.
    Source: https://keras.io/api/layers/regularizers/
    """
    named = model.named_parameters()
    kernels = [p for name, p in named if p.requires_grad and p.ndim > 1 and "bias" not in name]
    return sum((l1 * p.abs().sum() + l2 * p.square().sum() for p in kernels), torch.tensor(0.0))
