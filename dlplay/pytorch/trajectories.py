"""Trains a PyTorch model for a few steps on one batch, to see where its weights go."""

from collections.abc import Callable, Iterator

import torch
from torch import nn

from dlplay.pytorch import optimizers
from dlplay.pytorch.structure import mode
from dlplay.settings import Optimizer


def advance(
    model: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    objective: Callable[[torch.Tensor], torch.Tensor],
    optimizer: Optimizer,
    learning_rate: float,
) -> Iterator[float]:
    """Make one step each time the next loss is asked for, in training mode with dropout off.

    The caller gives the model back as it was (``structure.kept``).

    Yields
    ------
    float
        The loss before the step, whose update the weights then have.
    """
    rule = optimizers.make(model, optimizer, learning_rate)
    while True:
        with mode(model, training=True):
            rule.zero_grad()
            loss = objective(model(*inputs))
            loss.backward()
            rule.step()
        yield float(loss.detach())
