"""PyTorch's own kind of optimizer and layer, made to behave like Keras's.

For what no argument reconciles. Everything here behaves like the *other* framework's stock form;
``dlplay/keras/reconciled.py`` has the same names, there behaving like PyTorch.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from dlplay.errors import SettingError
from dlplay.pytorch import rules
from dlplay.pytorch.clipping import clip
from dlplay.settings import Optimizer
from dlplay.settings.optimizers import rounded


class _Update(torch.optim.Optimizer):
    """Updates parameters by a rule of ``dlplay.pytorch.rules``; weight decay is decoupled.

    Parameters
    ----------
    parameters : iterable of torch.nn.Parameter, or of parameter groups
    values : settings.Optimizer
    learning_rate : float
    number : callable
        How the learning rate and the weight decay are read: ``rounded`` as stock Keras does,
        ``float`` as they are.
    like : str
        Whose formula clips.
    """

    def __init__(
        self,
        parameters: Any,
        values: Optimizer,
        learning_rate: float,
        number: Callable[[float], float] = rounded,
        like: str = "keras",
    ) -> None:
        super().__init__(parameters, {"lr": learning_rate, "weight_decay": values.weight_decay})
        self._values, self._number, self._like = values, number, like

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient; sparse gradients are made dense first."""
        with torch.enable_grad():
            loss = closure() if closure else None
        weights = [p for g in self.param_groups for p in g["params"] if p.grad is not None]
        gradients = clip([_dense(p.grad) for p in weights], self._values, self._like)
        clipped = dict(zip(weights, gradients, strict=True))
        for group in self.param_groups:
            rate, decay = self._number(group["lr"]), self._number(group["weight_decay"])
            for weight in group["params"]:
                if weight in clipped:
                    self._update(weight, clipped[weight], rate, decay)
        return loss

    def _update(
        self, weight: torch.Tensor, gradient: torch.Tensor, rate: float, decay: float
    ) -> None:
        state = self.state[weight] or self._start(weight)
        step = state["step"] + 1
        decayed = weight - weight * decay * rate if decay else weight
        rule = rules.RULES[self._values.name]
        new, kept = rule(decayed, gradient, state, rate, step, self._values)
        weight.copy_(new)
        self.state[weight] = {"step": step, **kept}

    def _start(self, weight: torch.Tensor) -> dict[str, Any]:
        values = self._values
        state = {
            name: torch.full_like(weight, rules.start(values, name)) for name in rules.kept(values)
        }
        if "product" in state:
            state["product"] = weight.new_ones(())
        return {"step": 0, **state}


def optimizer(parameters: Any, values: Optimizer, learning_rate: float) -> torch.optim.Optimizer:
    """Make an optimizer that updates as Keras's stock one of that name does.

    Lion, which ``torch.optim`` lacks, takes its numbers unrounded unless ``values.like`` is
    ``"keras"``.

    Parameters
    ----------
    parameters : list of torch.nn.Parameter, or of parameter groups

    Raises
    ------
    SettingError
        For SGD with dampening, which Keras has not.

    Source: https://keras.io/api/optimizers/
    """
    if values.name == "sgd" and values.dampening:
        raise SettingError("Keras's SGD has no dampening: set Optimizer.dampening to 0.")
    if values.name == "lion" and values.like != "keras":
        return _Update(parameters, values, learning_rate, number=float, like="pytorch")
    if values.name == "lion":
        betas = {"beta_1": rounded(values.beta_1), "beta_2": rounded(values.beta_2)}
        values = values.replace(**betas)
    return _Update(parameters, values, learning_rate)


def batch_norms(model: nn.Module) -> None:
    """Let every BatchNorm of a model keep Keras's running variance: the biased one.

    In place: the layers keep their weights, statistics and arguments.
    Source: https://keras.io/api/layers/normalization_layers/batch_normalization/
    """
    for module in model.modules():
        if type(module) in _BIASED:
            module.__class__ = _BIASED[type(module)]


class _BiasedVariance(_BatchNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        before = None if self.running_var is None else self.running_var.clone()
        output = super().forward(input)
        if self.training and before is not None and self.running_var is not None:
            count = input.numel() // input.shape[1]
            kept = (1 - _share(self)) * before
            self.running_var.sub_(kept).mul_((count - 1) / count).add_(kept)
        return output


class _BatchNorm1d(_BiasedVariance, nn.BatchNorm1d):
    pass


class _BatchNorm2d(_BiasedVariance, nn.BatchNorm2d):
    pass


class _BatchNorm3d(_BiasedVariance, nn.BatchNorm3d):
    pass


_BIASED: dict[type[nn.Module], type[nn.Module]] = {
    nn.BatchNorm1d: _BatchNorm1d,
    nn.BatchNorm2d: _BatchNorm2d,
    nn.BatchNorm3d: _BatchNorm3d,
}


def _share(module: _BatchNorm) -> float:
    """The share of the newest batch in the running variance; without momentum, all count alike."""
    if module.momentum is None and module.num_batches_tracked is not None:
        return 1 / int(module.num_batches_tracked)
    return module.momentum or 0.0


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient
