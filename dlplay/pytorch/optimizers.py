"""PyTorch's optimizers from settings."""

from typing import Any

import torch
from torch import nn

from dlplay.pytorch import reconciled
from dlplay.pytorch.clipping import clip
from dlplay.settings import Optimizer


def make(model: nn.Module, optimizer: Optimizer, learning_rate: float) -> torch.optim.Optimizer:
    """Make the optimizer for a model's trainable parameters.

    ``optimizer.like`` tells whose formula it follows: PyTorch's own, in PyTorch's own classes
    (Lion, which ``torch.optim`` lacks, is ours), or Keras's. Gradients are clipped at the start of
    each step.

    Raises
    ------
    SettingError
        For Keras's formula where Keras has none: SGD with dampening.

    Source: https://docs.pytorch.org/docs/stable/optim.html
    """
    parameters = _groups(model, optimizer)
    if optimizer.like == "keras" or optimizer.name == "lion":
        return reconciled.optimizer(parameters, optimizer, learning_rate)
    made = _stock(parameters, optimizer, learning_rate)
    if optimizer.clipping != "none":
        made.register_step_pre_hook(_clipping(optimizer))
    return made


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of every parameter group, from the next step on."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def _groups(model: nn.Module, optimizer: Optimizer) -> list[Any]:
    """The trainable parameters: in one group, or those that do not decay in a second one."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if optimizer.decayed == "all":
        return [p for _, p in named]
    bare = [p for name, p in named if p.ndim < 2 or "bias" in name]
    kernels = [p for name, p in named if not (p.ndim < 2 or "bias" in name)]
    undecayed = {"params": bare, "weight_decay": 0.0}
    return [group for group in ({"params": kernels}, undecayed) if group["params"]]


def _stock(parameters: Any, optimizer: Optimizer, learning_rate: float) -> torch.optim.Optimizer:
    table: dict[str, tuple[Any, Any]] = {
        "sgd": (torch.optim.SGD, _sgd),
        "adam": (torch.optim.Adam, _adam),
        "adamw": (torch.optim.AdamW, _adam),
        "rmsprop": (torch.optim.RMSprop, _rmsprop),
        "adagrad": (torch.optim.Adagrad, _adagrad),
        "adadelta": (torch.optim.Adadelta, _adadelta),
        "adamax": (torch.optim.Adamax, _betas),
        "nadam": (torch.optim.NAdam, _nadam),
    }
    kind, options = table[optimizer.name]
    decay = optimizer.weight_decay
    return kind(parameters, lr=learning_rate, weight_decay=decay, **options(optimizer))


def _sgd(optimizer: Optimizer) -> dict[str, Any]:
    return {
        "momentum": optimizer.momentum,
        "dampening": optimizer.dampening,
        "nesterov": optimizer.nesterov and optimizer.momentum > 0,
    }


def _betas(optimizer: Optimizer) -> dict[str, Any]:
    return {"betas": (optimizer.beta_1, optimizer.beta_2), "eps": optimizer.epsilon}


def _adam(optimizer: Optimizer) -> dict[str, Any]:
    return {**_betas(optimizer), "amsgrad": optimizer.amsgrad}


def _nadam(optimizer: Optimizer) -> dict[str, Any]:
    return {**_betas(optimizer), "momentum_decay": optimizer.momentum_decay}


def _rmsprop(optimizer: Optimizer) -> dict[str, Any]:
    return {
        "alpha": optimizer.beta_2,
        "eps": optimizer.epsilon,
        "centered": optimizer.centered,
        "momentum": optimizer.rmsprop_momentum,
    }


def _adagrad(optimizer: Optimizer) -> dict[str, Any]:
    start = optimizer.initial_accumulator
    return {"eps": optimizer.epsilon, "initial_accumulator_value": start}


def _adadelta(optimizer: Optimizer) -> dict[str, Any]:
    return {"rho": optimizer.beta_2, "eps": optimizer.epsilon}


def _clipping(optimizer: Optimizer) -> Any:
    @torch.no_grad()
    def hook(made: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        weights = [p for g in made.param_groups for p in g["params"] if p.grad is not None]
        gradients = [p.grad for p in weights]
        for weight, gradient in zip(weights, clip(gradients, optimizer, "pytorch"), strict=True):
            weight.grad = gradient

    return hook
