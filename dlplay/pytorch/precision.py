"""In which floating-point type PyTorch computes."""

from contextlib import AbstractContextManager, nullcontext

import torch

from dlplay.settings import Precision


def dtype(precision: Precision) -> torch.dtype:
    """The type in which weights and inputs are kept."""
    return torch.float64 if precision.name == "float64" else torch.float32


def scope(precision: Precision, device: str) -> AbstractContextManager[object]:
    """A context in which the forward pass runs: ``torch.autocast`` for a mixed precision.

    Source: https://docs.pytorch.org/docs/stable/amp.html
    """
    if precision.name == "bfloat16":
        return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)
    return nullcontext()
