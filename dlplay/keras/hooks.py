"""Lets a function of ours see a Keras layer's calls: Keras has no hooks of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def calls_through(layer: Any, call: Callable[..., Any], name: str = "call") -> Iterator[None]:
    """Let ``call(original, *args, **kwargs)`` stand in for a layer's ``call`` in this context.

    ``name`` may be another callable attribute, such as ``"activation"``.
    """
    original = getattr(layer, name)
    held = name in vars(layer)

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return call(original, *args, **kwargs)

    object.__setattr__(layer, name, stand_in)
    try:
        yield
    finally:
        if held:
            object.__setattr__(layer, name, original)
        else:
            object.__delattr__(layer, name)
