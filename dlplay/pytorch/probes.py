"""Looks inside a PyTorch model while it makes a training step."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from dlplay.pytorch.structure import leaves
from dlplay.records import BINS, POSITIONS

_POSITIONS = torch.from_numpy(POSITIONS)
_ACTIVATIONS = tuple(
    getattr(nn.modules.activation, name)
    for name in nn.modules.activation.__all__
    if name != "MultiheadAttention"
)


def _places(tensor: torch.Tensor) -> torch.Tensor:
    """Where to look in a tensor: images at the pixels and channels that Keras's wing looks at."""
    places = (_POSITIONS * tensor.numel()).long()
    if tensor.ndim >= 4:
        channels, pixels = tensor.shape[1], tensor[0, 0].numel()
        rest, channel = places // channels, places % channels
        places = (rest // pixels * channels + channel) * pixels + rest % pixels
    return places.to(tensor.device)


class Probe:
    """Bounded samples of the activations and gradients of a model's layers, newest call each."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, str], torch.Tensor] = {}

    def add(self, layer: str, what: str, tensor: torch.Tensor) -> None:
        """Sample a tensor where it lives; empty and integer tensors are passed over.

        A second activation of a layer replaces the first. A second gradient does not: the
        backward pass meets the newest call first.
        """
        known = what == "gradient" and (layer, what) in self._samples
        if tensor.numel() and tensor.is_floating_point() and not known:
            self._samples[layer, what] = tensor.detach().take(_places(tensor)).float()

    def keys(self) -> list[tuple[str, str]]:
        """(layer, ``"activation"`` or ``"gradient"``) of each row of ``reduce``, in layer order."""
        layers = dict.fromkeys(layer for layer, what in self._samples if what == "activation")
        wanted = [(layer, what) for layer in layers for what in ("activation", "gradient")]
        return [key for key in wanted if key in self._samples]

    def reduce(self) -> torch.Tensor:
        """All samples as one small tensor (keys, 5 + BINS), made where the samples live.

        The columns are low, high, mean, standard deviation and share of zeros, then the share of
        the finite sample in each bin.
        """
        if not self._samples:
            return torch.empty(0, 5 + BINS)
        samples = torch.stack([self._samples[key] for key in self.keys()])
        finite = samples.isfinite()
        count = finite.sum(1).clamp(min=1)
        low = samples.where(finite, torch.inf).amin(1).nan_to_num(posinf=0.0)
        high = samples.where(finite, -torch.inf).amax(1).nan_to_num(neginf=0.0)
        # In units of the largest value, so that no sum, square or difference overflows.
        tiny = torch.finfo(samples.dtype).tiny
        unit = torch.maximum(low.abs(), high.abs()).clamp(min=tiny)
        parts = samples.where(finite, 0.0) / unit[:, None]
        mean = parts.sum(1) / count
        spread = (parts - mean[:, None]).where(finite, 0.0)
        std = (spread.square().sum(1) / count).sqrt()
        zeros = (samples == 0).float().mean(1)
        scale = BINS / (high / unit - low / unit).clamp(min=1e-30)  # of a constant
        bins = ((parts - (low / unit)[:, None]) * scale[:, None]).clamp(0, BINS - 1).long()
        counts = samples.new_zeros(len(samples), BINS).scatter_add_(1, bins, finite.float())
        moments = torch.stack([low, high, mean * unit, std * unit, zeros], dim=1)
        return torch.cat([moments, counts / count[:, None]], dim=1)


@contextmanager
def watch(model: nn.Module) -> Iterator[Probe]:
    """Sample every layer that has weights during the calls of ``model`` inside this context.

    Where an activation module takes a layer's output, the sample is taken behind it, as with an
    activation fused into a Keras layer. All hooks come off again, also after an exception.
    """
    probe = Probe()
    newest: list[Any] = ["", None]

    def hook(module: nn.Module, inputs: tuple[Any, ...], output: Any, name: str) -> None:
        if isinstance(output, tuple) and output:
            output = output[0]  # of a recurrent layer the sequence, of attention what it attends to
        if not isinstance(output, torch.Tensor):
            return
        if isinstance(module, _ACTIVATIONS) and inputs and inputs[0] is newest[1]:
            name = newest[0]
        elif not any(True for _ in module.parameters(recurse=False)):
            return
        newest[:] = [name, output]
        probe.add(name, "activation", output)
        if output.requires_grad:
            output.register_hook(lambda gradient: probe.add(name, "gradient", gradient))

    handles = [
        module.register_forward_hook(_named(hook, f"{name} {type(module).__name__}".strip()))
        for name, module in leaves(model).items()
    ]
    try:
        yield probe
    finally:
        for handle in handles:
            handle.remove()


def _named(hook: Any, name: str) -> Any:
    return lambda module, inputs, output: hook(module, inputs, output, name)
