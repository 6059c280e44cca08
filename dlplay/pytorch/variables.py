"""Canonical arrays to and from PyTorch's parameters and buffers."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from dlplay.pytorch.kinds import Rows
from dlplay.traces import Slot


def values(slot: Slot) -> np.ndarray:
    """The canonical array that a slot holds now: a copy, in the parameter's own type."""
    arrays = [_part(variable).detach().cpu().numpy() for variable in slot.variables]
    return np.array(slot.read(*arrays))


def assign(pairs: Iterable[tuple[Slot, np.ndarray]]) -> None:
    """Write canonical arrays into their slots; shapes have been checked before."""
    with torch.no_grad():
        for slot, array in pairs:
            for variable, part in zip(slot.variables, slot.split(array), strict=True):
                _part(variable).copy_(torch.from_numpy(np.ascontiguousarray(part)))


def gradient(slot: Slot, gradients: Mapping[int, torch.Tensor | None]) -> np.ndarray | None:
    """The canonical gradient of a slot, from the gradients of the parameters by their id."""
    return slot.gradient(_gradient(variable, gradients) for variable in slot.variables)


def parameters(slot: Slot) -> list[torch.Tensor]:
    """The whole parameters and buffers that a slot's variables lie in."""
    return [v.parameter if isinstance(v, Rows) else v for v in slot.variables]


def _part(variable: Any) -> torch.Tensor:
    return variable.parameter[variable.rows] if isinstance(variable, Rows) else variable


def _gradient(variable: Any, gradients: Mapping[int, torch.Tensor | None]) -> np.ndarray | None:
    whole = variable.parameter if isinstance(variable, Rows) else variable
    found = gradients.get(id(whole))
    if found is None:
        return None
    found = found.to_dense() if found.is_sparse else found
    array = found.detach().cpu().numpy()
    return array[variable.rows] if isinstance(variable, Rows) else array
