"""Reads a PyTorch model's layers into the canonical form, and writes them back."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dlplay.errors import ModelError
from dlplay.records import Layer
from dlplay.settings import Precision

_DENSE = {"kernel": "weight", "bias": "bias"}
_NORM = {"gamma": "weight", "beta": "bias"}
_BATCH_NORM = {**_NORM, "moving_mean": "running_mean", "moving_variance": "running_var"}

#: Of each class that has weights: its canonical kind, and PyTorch's name of each array.
_KINDS: dict[type[nn.Module], tuple[str, dict[str, str]]] = {
    nn.Linear: ("dense", _DENSE),
    nn.Conv1d: ("conv1d", _DENSE),
    nn.Conv2d: ("conv2d", _DENSE),
    nn.Conv3d: ("conv3d", _DENSE),
    nn.Embedding: ("embedding", {"embeddings": "weight"}),
    nn.LayerNorm: ("layer_norm", _NORM),
    nn.BatchNorm1d: ("batch_norm", _BATCH_NORM),
    nn.BatchNorm2d: ("batch_norm", _BATCH_NORM),
    nn.BatchNorm3d: ("batch_norm", _BATCH_NORM),
}


@dataclass(frozen=True)
class _Call:
    """One layer with weights, as the example met it."""

    name: str
    module: nn.Module
    flattened: tuple[int, ...] | None  # the channels-first shape that was flattened before it

    def tensors(self) -> dict[str, torch.Tensor]:
        names = _KINDS[type(self.module)][1]
        found = {key: getattr(self.module, name) for key, name in names.items()}
        return {key: tensor for key, tensor in found.items() if tensor is not None}

    def to_canonical(self, array: np.ndarray) -> np.ndarray:
        if array.ndim > 2:
            return np.moveaxis(array, (1, 0), (-2, -1))
        if array.ndim == 2 and isinstance(self.module, nn.Linear):
            if self.flattened:
                blocks = array.reshape(len(array), *self.flattened)
                array = np.moveaxis(blocks, 1, -1).reshape(array.shape)
            return array.T
        return array

    def from_canonical(self, array: np.ndarray) -> np.ndarray:
        if array.ndim > 2:
            return np.moveaxis(array, (-2, -1), (1, 0))
        if array.ndim == 2 and isinstance(self.module, nn.Linear):
            array = array.T
            if self.flattened:
                channels, *sizes = self.flattened
                blocks = array.reshape(len(array), *sizes, channels)
                array = np.moveaxis(blocks, -1, 1).reshape(array.shape)
        return array


def leaves(model: nn.Module) -> dict[str, nn.Module]:
    """The modules that contain no others, by their name in the model; attention counts as one."""
    whole = tuple(name for name, m in model.named_modules() if isinstance(m, nn.MultiheadAttention))
    return {
        name: module
        for name, module in model.named_modules()
        if name in whole
        or not (any(module.children()) or name.startswith(tuple(f"{w}." for w in whole)))
    }


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
    return [
        Layer(
            name=call.name,
            kind=_KINDS[type(call.module)][0],
            arrays={
                key: call.to_canonical(tensor.detach().cpu().numpy()).copy()
                for key, tensor in call.tensors().items()
            },
        )
        for call in _trace(model, example)
    ]


def write(model: nn.Module, example: torch.Tensor, layers: list[Layer]) -> None:
    """Write arrays into the model's layers, in the order of ``read``; the inverse of ``read``.

    Raises
    ------
    ModelError
        Where the number of layers, a kind, a name or a shape does not fit; then nothing is written.
    """
    calls = _trace(model, example)
    if len(calls) != len(layers):
        raise ModelError(
            f"The PyTorch model has {len(calls)} layers with weights, but {len(layers)} were given."
        )
    ready: list[tuple[torch.Tensor, torch.Tensor]] = []
    for call, layer in zip(calls, layers, strict=True):
        for key, tensor in call.tensors().items():
            if key not in layer.arrays:
                raise ModelError(f"Layer {call.name!r} needs {key!r}, which {layer.name!r} lacks.")
            array = call.from_canonical(layer.arrays[key])
            if array.shape != tuple(tensor.shape):
                raise ModelError(
                    f"{key!r} of PyTorch layer {call.name!r} has shape {tuple(tensor.shape)}, but"
                    f" {layer.name!r} gives {array.shape}."
                )
            ready.append((tensor, torch.from_numpy(np.ascontiguousarray(array))))
    with torch.no_grad():
        for tensor, value in ready:
            tensor.copy_(value)


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


def _trace(model: nn.Module, example: torch.Tensor) -> list[_Call]:
    """Run the example once, and note each layer with weights when it is first called."""
    calls: dict[str, _Call] = {}
    spatial: list[torch.Tensor] = []

    def before(module: nn.Module, inputs: tuple[torch.Tensor, ...], name: str) -> None:
        if type(module) not in _KINDS and any(True for _ in module.parameters(recurse=False)):
            raise ModelError(
                f"Layer {name!r} is a {type(module).__name__}, which has no canonical form yet."
            )
        if type(module) in _KINDS:
            calls.setdefault(name, _Call(name, module, _flattened(inputs[0], spatial)))

    def after(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if isinstance(output, torch.Tensor) and output.ndim > 2:
            spatial.append(output)

    if example.ndim > 2:
        spatial.append(example)
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(_with_name(before, name)))
        handles.append(module.register_forward_hook(after))
    try:
        infer(model, example)
    finally:
        for handle in handles:
            handle.remove()
    return list(calls.values())


def _with_name(hook, name):  # type: ignore[no-untyped-def]
    return lambda module, inputs: hook(module, inputs, name)


def _flattened(data: torch.Tensor, spatial: list[torch.Tensor]) -> tuple[int, ...] | None:
    """The shape, batch left out, that was flattened into ``data``: the newest with its values.

    By value, because flattening a tensor whose memory is channels-last makes a copy.
    """
    if data.ndim != 2:
        return None
    for tensor in reversed(spatial):
        if tensor.numel() == data.numel() and torch.equal(tensor.flatten(1), data):
            return tuple(tensor.shape[1:])
    return None
