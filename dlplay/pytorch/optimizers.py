"""PyTorch's optimizers from settings."""

import torch
from torch import nn

from dlplay.settings import Optimizer


def make(model: nn.Module, optimizer: Optimizer, learning_rate: float) -> torch.optim.Optimizer:
    """Make the optimizer for a model's trainable parameters.

    Source: https://docs.pytorch.org/docs/stable/optim.html
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    match optimizer.name:
        case "sgd":
            momentum = optimizer.momentum
            nesterov = optimizer.nesterov and momentum > 0
            return torch.optim.SGD(parameters, learning_rate, momentum=momentum, nesterov=nesterov)
        case "rmsprop":
            return torch.optim.RMSprop(
                parameters, learning_rate, alpha=optimizer.beta_2, eps=optimizer.epsilon
            )
        case "adamw":
            return torch.optim.AdamW(
                parameters,
                learning_rate,
                betas=(optimizer.beta_1, optimizer.beta_2),
                eps=optimizer.epsilon,
                weight_decay=optimizer.weight_decay,
            )
    betas = (optimizer.beta_1, optimizer.beta_2)
    return torch.optim.Adam(parameters, learning_rate, betas=betas, eps=optimizer.epsilon)


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of every parameter group, from the next step on."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
