"""Reads a PyTorch model's layers into the canonical form, and writes them back."""

import torch
from torch import nn

from dlplay.errors import ModelError
from dlplay.pytorch.structure import leaves
from dlplay.pytorch.tracing import follow
from dlplay.pytorch.variables import assign
from dlplay.records import Layer
from dlplay.settings import Precision
from dlplay.traces import Visit, first_visits, fitting

__all__ = ["home", "infer", "leaves", "read", "write"]


def read(model: nn.Module, example: torch.Tensor) -> list[Layer]:
    """The layers that have weights, in the order in which ``example`` meets them.

    Parameters
    ----------
    example : torch.Tensor
        A small batch of inputs, as the model takes them. It tells the order of the layers, and
        what a dense layer's flattened input was, whose rows then come in channels-last order.

    Raises
    ------
    ModelError
        For a layer with weights of a class that has no canonical form here.
    """
    visits = first_visits(follow(model, (example,)).visits)
    return [Layer(visit.name, visit.kind, visit.arrays, visit.options) for visit in visits]


def write(model: nn.Module, example: torch.Tensor, layers: list[Layer]) -> None:
    """Write arrays into the model's layers, in the order of ``read``; the inverse of ``read``.

    Raises
    ------
    ModelError
        Where the number of layers, a kind, a name or a shape does not fit; then nothing is written.
    """
    visits: list[Visit] = first_visits(follow(model, (example,)).visits)
    if len(visits) != len(layers):
        raise ModelError(
            f"The PyTorch model has {len(visits)} layers with weights, but {len(layers)} were"
            " given."
        )
    pairs = list(zip(visits, layers, strict=True))
    assign([ready for visit, layer in pairs for ready in fitting("PyTorch", visit, layer)])


def home(model: nn.Module) -> tuple[Precision, str]:
    """The floating-point type and the device of a model, by its first parameter."""
    first = next(model.parameters(), torch.empty(0))
    double = first.dtype == torch.float64
    return Precision("float64" if double else "float32"), str(first.device)


def infer(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The model's output in inference mode; its own mode comes back, also after an exception."""
    modes = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad():
            return model.eval()(x)
    finally:
        for module, training in modes.items():
            module.training = training
