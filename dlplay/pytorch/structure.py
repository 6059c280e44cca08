"""What a PyTorch model is made of, and what it cannot be made of."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized

from dlplay.errors import ModelError
from dlplay.pytorch.arrays import to_tensor
from dlplay.settings import Precision


def leaves(model: nn.Module) -> dict[str, nn.Module]:
    """The modules that contain no others, by their name in the model; attention counts as one."""
    whole = tuple(name for name, m in model.named_modules() if isinstance(m, nn.MultiheadAttention))
    return {
        name: module
        for name, module in model.named_modules()
        if name in whole
        or not (any(module.children()) or name.startswith(tuple(f"{w}." for w in whole)))
    }


def unbuilt(model: nn.Module) -> bool:
    """Whether a module has no weights yet because it was never called."""
    return any(is_lazy(parameter) for parameter in model.parameters())


def check(model: nn.Module) -> None:
    """Refuse a model whose weights cannot be read as they stand.

    Raises
    ------
    ModelError
        For a compiled, scripted, quantized, lazy or parametrized model, one whose weights lie on
        several devices or in several types, or one with weights that are not finite.
    """
    if hasattr(model, "_orig_mod"):
        raise ModelError(
            "The PyTorch model went through torch.compile, which hides its layers: give the model"
            " from before (it is model._orig_mod, and shares the weights)."
        )
    if isinstance(model, torch.jit.ScriptModule):
        raise ModelError("The PyTorch model is a TorchScript module: give the model from before.")
    for name, module in model.named_modules():
        _check_module(name or type(module).__name__, module)
    _check_uniform(model)


def _check_module(name: str, module: nn.Module) -> None:
    if "quant" in type(module).__module__:
        raise ModelError(
            f"PyTorch layer {name!r} is quantized ({type(module).__module__}): give the model in"
            " floating point, from before it was quantized."
        )
    if is_parametrized(module):
        raise ModelError(
            f"PyTorch layer {name!r} is parametrized (weight norm, spectral norm, ...): call"
            " torch.nn.utils.parametrize.remove_parametrizations on it first."
        )
    for key, parameter in module.named_parameters(recurse=False):
        if is_lazy(parameter):
            raise ModelError(
                f"PyTorch layer {name!r} is lazy and has no {key!r} yet: call the model once on a"
                " batch, then pair it."
            )
        if not torch.isfinite(parameter).all():
            raise ModelError(
                f"{key!r} of PyTorch layer {name!r} holds values that are not finite (NaN or"
                " infinity): start from weights that are."
            )


def _check_uniform(model: nn.Module) -> None:
    parameters = dict(model.named_parameters())
    for what in ("device", "dtype"):
        homes = {name: getattr(parameter, what) for name, parameter in parameters.items()}
        if len(set(homes.values())) > 1:
            first, *_ = homes
            other = next(name for name in homes if homes[name] != homes[first])
            raise ModelError(
                f"The PyTorch model is on more than one {what}: {first!r} has {homes[first]},"
                f" {other!r} has {homes[other]}."
            )


@contextmanager
def mode(model: nn.Module, training: bool) -> Iterator[None]:
    """Training mode with dropout off, or inference mode; each module's own mode comes back."""
    modes = {module: module.training for module in model.modules()}
    rates = {m: m.dropout for m in model.modules() if isinstance(getattr(m, "dropout", 0), float)}
    try:
        model.train(training)
        for module in model.modules():
            if "Dropout" in type(module).__name__:
                module.eval()
        for module in rates:
            module.dropout = 0.0  # type: ignore[assignment]
        yield
    finally:
        for module, rate in rates.items():
            module.dropout = rate
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def kept(model: nn.Module) -> Iterator[None]:
    """Give the model and the random generators back as they were, also after an exception.

    Weights and buffers, each module's mode, gradients, and the generators of torch and NumPy.
    """
    tensors = [*model.parameters(), *model.buffers()]
    before = [tensor.detach().clone() for tensor in tensors]
    gradients = [parameter.grad for parameter in model.parameters()]
    modes = {module: module.training for module in model.modules()}
    random = np.random.get_state()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        np.random.set_state(random)
        with torch.no_grad():
            for tensor, value in zip(tensors, before, strict=True):
                tensor.copy_(value)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        for module, training in modes.items():
            module.training = training


def as_inputs(model: nn.Module, arrays: tuple[np.ndarray, ...]) -> tuple[torch.Tensor, ...]:
    """A model's inputs as it takes them, from arrays that are batch first and channels last.

    Images and volumes become channels-first; so does a (batch, length, channels) array where the
    model begins with a one-dimensional convolution, pooling or batch normalization. Where it
    begins with a recurrent layer that is not ``batch_first``, time comes first.
    """
    first = next(iter(leaves(model).values()), model)
    parameter = next(model.parameters(), torch.empty(0))
    precision = Precision("float64" if parameter.dtype == torch.float64 else "float32")
    given = (_arranged(first, array) for array in arrays)
    return tuple(to_tensor(array, precision, str(parameter.device)) for array in given)


def _arranged(first: nn.Module, array: np.ndarray) -> np.ndarray:
    if array.ndim == 3 and type(first).__name__.endswith("1d"):
        return np.moveaxis(array, -1, 1)
    recurrent = isinstance(first, (nn.RNN, nn.LSTM, nn.GRU)) and not first.batch_first
    return np.moveaxis(array, 1, 0) if array.ndim == 3 and recurrent else array
