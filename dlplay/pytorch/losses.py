"""What PyTorch minimises."""

import torch
from torch.nn import functional


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of logits (batch, classes) against labels (batch,), in nats.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
    """
    return functional.cross_entropy(logits, labels)
