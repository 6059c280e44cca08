"""Follows a PyTorch model through one pass: modules by hooks, functional calls by a function mode.

Source: https://docs.pytorch.org/docs/stable/torch.overrides.html
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from dlplay.errors import ModelError
from dlplay.pytorch import kinds, stateless
from dlplay.pytorch.hooks import calls_seen
from dlplay.pytorch.structure import leaves, mode
from dlplay.pytorch.variables import gradient, parameters, values
from dlplay.traces import Call, Part, Trace, Visit, flat_order

#: Kinds that tell what the axes of a (batch, ., .) tensor are; all others leave them.
_CHANNELS_FIRST = ("conv1d", "conv1d_transpose", "max_pool1d", "average_pool1d")
_CHANNELS_LAST = ("dense", "embedding", "lstm", "gru", "simple_rnn", "attention", "layer_norm")


def follow(
    model: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    *,
    keep: bool = False,
    training: bool = False,
    objective: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> Trace:
    """Run a model once and note every part that runs.

    Parameters
    ----------
    inputs : tuple of torch.Tensor
        As the model takes them.
    keep : bool
        Copy each part's input and output, not only its weights.
    training : bool
        Run in training mode, with dropout off; else in inference mode.
    objective : callable, optional
        From the model's output to a loss, whose gradients are then kept.

    Weights and batch statistics are left as they are.

    Raises
    ------
    ModelError
        For a layer with weights that has no canonical form, by its name.
    """
    follower = _Follower(keep, objective is not None)
    follower.start(list(inputs))
    with ExitStack() as stack:
        stack.enter_context(mode(model, training))
        stack.enter_context(nullcontext() if objective else torch.no_grad())
        stack.enter_context(_hooks(model, follower))
        stack.enter_context(_statistics(model))
        with follower:
            output = model(*inputs)
        if not isinstance(output, torch.Tensor):
            raise ModelError(
                f"The PyTorch model gives a {type(output).__name__}, but twins compare one tensor:"
                " wrap it in a module that gives the tensor to compare."
            )
        loss = _differentiate(follower.visits, objective(output)) if objective else None
    for visit in follower.visits:
        visit.arrays = {key: values(slot) for key, slot in visit.part.slots.items()}
    return Trace(follower.visits, output.detach().cpu().numpy(), loss, follower.order(output))


def _differentiate(visits: list[Visit], loss: torch.Tensor) -> float:
    """Fill in the gradients by weights; those by outputs come in by their hooks on the way."""
    wanted = {
        id(p): p
        for visit in visits
        for slot in visit.part.slots.values()
        for p in parameters(slot)
        if p.requires_grad
    }
    found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    gradients = dict(zip(wanted, found, strict=True))
    for visit in visits:
        for key, slot in visit.part.slots.items():
            array = gradient(slot, gradients)
            if array is not None:
                visit.gradients[key] = array
    return float(loss.detach())


@contextmanager
def _statistics(model: nn.Module) -> Iterator[None]:
    """Give buffers back as they were: a pass in training mode moves batch statistics."""
    before = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(before[name])


@contextmanager
def _hooks(model: nn.Module, follower: "_Follower") -> Iterator[None]:
    """Tell the follower where the pass is; all hooks come off, also after an exception."""
    single = leaves(model)
    with ExitStack() as stack:
        for name, module in model.named_modules():
            hooks = follower.hooks(name) if name in single else follower.path_hooks(name)
            stack.enter_context(calls_seen(module, *hooks))
        yield


def _describe(name: str, module: nn.Module, call: Call) -> tuple[Part, ...]:
    try:
        parts = kinds.describe(module, call) or stateless.describe(module, call)
    except ModelError as error:
        raise ModelError(f"PyTorch layer {name!r}: {error}") from error
    if parts is None and any(True for _ in module.parameters(recurse=False)):
        raise ModelError(
            f"PyTorch layer {name!r} is a {type(module).__name__} with weights of its own, which"
            " has no canonical form: pair the model's known layers, or write it with them."
        )
    return parts or ()


class _Follower(TorchFunctionMode):
    """Notes one visit for each part that runs; keeps what it saw alive, so that ids stay unique."""

    def __init__(self, keep: bool, gradients: bool) -> None:
        super().__init__()
        self.visits: list[Visit] = []
        self._keep, self._gradients = keep, gradients
        self._path = [""]
        self._before: list[np.ndarray | None] = []  # one for each leaf that is running
        self._origin: dict[int, tuple[int, ...]] = {}
        self._orders: dict[int, np.ndarray | None] = {}
        self._first: dict[int, bool] = {}  # of (batch, ., .) tensors: whether axis 1 is channels
        self._alive: list[torch.Tensor] = []
        self._spatial: list[torch.Tensor] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        inputs = [] if self._before else _tensors((args, kwargs))
        before = self._copy(inputs[0]) if inputs else None
        output = func(*args, **kwargs)
        if inputs and isinstance(output, torch.Tensor) and output.is_floating_point():
            name = str(getattr(func, "__name__", "")).strip("_")
            call = Call(tuple(inputs[0].shape), tuple(output.shape))
            part = stateless.describe_function(name, args[1:], kwargs, call)
            if part is None:
                self._remember(output, inputs, self._sources(inputs), None)
            else:
                self._note(f"{self._path[-1]} {name}()".strip(), part, inputs, before, output)
        return output

    def start(self, inputs: list[torch.Tensor]) -> None:
        """Take the model's own inputs."""
        for tensor in inputs:
            self._remember(tensor, [], (), None)

    def hooks(self, name: str) -> tuple[Any, Any]:
        """What runs before and after a leaf module; what it calls inside is its own business."""

        def pre(module: nn.Module, args: Any, kwargs: Any) -> None:
            inputs = _tensors((args, kwargs))
            self._before.append(None)  # from here on, functions are not noted
            self._before[-1] = self._copy(inputs[0]) if inputs else None

        def post(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            self._leaf(name, module, _tensors((args, kwargs)), self._before[-1], output)
            self._before.pop()

        return pre, post

    def path_hooks(self, name: str) -> tuple[Any, Any]:
        """What runs before and after a module that contains others."""

        def pre(module: nn.Module, args: Any, kwargs: Any) -> None:
            self._path.append(name)

        def post(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            self._path.pop()

        return pre, post

    def _leaf(
        self, name: str, module: nn.Module, inputs: list[torch.Tensor], before: Any, output: Any
    ) -> None:
        outputs = _tensors(output)
        if not inputs or not outputs:
            return
        call = Call(tuple(inputs[0].shape), tuple(outputs[0].shape), self.order(inputs[0]))
        parts = _describe(name, module, call)
        sources, base = self._sources(inputs), len(self.visits)
        for part in parts:
            self._note(name + part.suffix, part, inputs, before, outputs[0], module)
            visit = self.visits[-1]
            visit.input_order = call.order
            visit.sources = tuple(base + place for place in part.after) or sources
        for other in outputs if not parts else outputs[1:]:
            self._remember(other, inputs, (len(self.visits) - 1,) if parts else sources, None)
        if isinstance(module, (nn.RNN, nn.LSTM, nn.GRU)) and self._keep:
            _recurrent_outputs(module, self.visits[-len(parts) :], output)

    def _note(
        self,
        name: str,
        part: Part,
        inputs: list[torch.Tensor],
        before: np.ndarray | None,
        output: torch.Tensor,
        layer: nn.Module | None = None,
    ) -> None:
        visit = Visit(name, part, self._sources(inputs), layer, before, self._copy(output))
        self.visits.append(visit)
        self._remember(output, inputs, (len(self.visits) - 1,), part)
        visit.order = self._orders.get(id(output))
        if self._gradients and output.requires_grad:
            output.register_hook(_keeper(visit))

    def _copy(self, tensor: torch.Tensor) -> np.ndarray | None:
        return tensor.detach().cpu().clone().numpy() if self._keep else None

    def _sources(self, inputs: list[torch.Tensor]) -> tuple[int, ...]:
        found = (self._origin.get(id(tensor), ()) for tensor in inputs)
        return tuple(dict.fromkeys(index for origin in found for index in origin))

    def _remember(
        self,
        tensor: torch.Tensor,
        inputs: list[torch.Tensor],
        origin: tuple[int, ...],
        part: Part | None,
    ) -> None:
        """Where a tensor comes from, and what its axes are."""
        key, kind = id(tensor), part.kind if part else ""
        source = inputs[0] if inputs else None
        self._origin[key] = origin
        self._alive.append(tensor)
        inherited = tensor.ndim > 3 if source is None else self._first.get(id(source), False)
        self._first[key] = kind in _CHANNELS_FIRST or (inherited and kind not in _CHANNELS_LAST)
        if tensor.ndim > 2 and kind != "permute" and tensor.is_floating_point():
            self._spatial.append(tensor)
        if tensor.ndim == 2:
            same = source is not None and source.shape == tensor.shape
            weighted = part is not None and "kernel" in part.slots
            order = self._orders.get(id(source)) if same and not weighted else None
            self._orders[key] = self._found_order(tensor) if order is None else order

    def order(self, tensor: torch.Tensor) -> np.ndarray | None:
        """In which order a tensor's features are, where they are a flattened image."""
        if tensor.ndim == 2 and id(tensor) not in self._orders:
            self._orders[id(tensor)] = self._found_order(tensor)
        return self._orders.get(id(tensor))

    def _found_order(self, data: torch.Tensor) -> np.ndarray | None:
        """By value, because flattening may copy: the newest image that ``data`` is, flattened."""
        for image in reversed(self._spatial):
            fits = image.numel() == data.numel() and len(image) == len(data)
            if fits and torch.equal(image.flatten(1), data):
                return flat_order(tuple(image.shape[1:]), self._first[id(image)])
        return None


def _keeper(visit: Visit) -> Callable[[torch.Tensor], None]:
    def keep(gradient: torch.Tensor) -> None:
        visit.gradient = gradient.detach().cpu().clone().numpy()

    return keep


def _recurrent_outputs(module: Any, visits: list[Visit], output: Any) -> None:
    """Only the last layer's output can be seen; it goes to the last part, batch first."""
    sequence, state = output
    hidden = state[0] if isinstance(state, tuple) else state
    last = torch.cat(list(hidden[-2:] if module.bidirectional else hidden[-1:]), dim=-1)
    for visit in visits[:-1]:
        visit.output = None
    batch_first = sequence if module.batch_first else sequence.transpose(0, 1)
    visits[-1].output = batch_first.detach().cpu().numpy()
    visits[-1].final = last.detach().cpu().numpy()


def _tensors(values: Any) -> list[torch.Tensor]:
    """The floating-point and whole-number tensors in a call's arguments or results, in order."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (tuple, list)):
        return []
    return [tensor for value in values for tensor in _tensors(value)]
