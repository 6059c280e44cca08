"""Lets functions of ours see a PyTorch module's calls, by its own hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def calls_seen(
    module: nn.Module, before: Callable[..., None], after: Callable[..., None]
) -> Iterator[None]:
    """Let ``before(module, args, kwargs)`` and ``after(..., output)`` run around its calls here."""
    handles = [
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after, with_kwargs=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
