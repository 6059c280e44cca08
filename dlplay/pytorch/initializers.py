"""Draws a model's weights anew, with PyTorch's own initializers."""

import torch
from torch import nn

from dlplay.settings import Initializer


def apply(model: nn.Module, initializer: Initializer) -> None:
    """Draw every kernel of dense and convolution layers in place; biases become zero.

    ``"default"`` leaves what PyTorch drew when the model was made. Seed before calling.
    Source: https://docs.pytorch.org/docs/stable/nn.init.html
    """
    if initializer.name == "default":
        return
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            _draw(module.weight, initializer)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def _draw(weight: torch.Tensor, initializer: Initializer) -> None:
    gain = initializer.gain
    match initializer.name:
        case "xavier_uniform":
            nn.init.xavier_uniform_(weight, gain=gain)
        case "xavier_normal":
            nn.init.xavier_normal_(weight, gain=gain)
        case "he_uniform":
            nn.init.kaiming_uniform_(weight, nonlinearity="relu").data.mul_(gain)
        case "he_normal":
            nn.init.kaiming_normal_(weight, nonlinearity="relu").data.mul_(gain)
        case "orthogonal":
            nn.init.orthogonal_(weight, gain=gain)
        case "normal":
            nn.init.normal_(weight, std=0.05 * gain)
        case "zeros":
            nn.init.zeros_(weight)
