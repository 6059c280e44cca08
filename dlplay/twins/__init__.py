"""Pairs a PyTorch model with a Keras model: align their layers, copy weights, compare, explain.

``dlplay.twins`` is this package, and it can be called: ``dlplay.twins(torch_model, keras_model)``
gives a ``Twins``.
"""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dlplay.twins.comparison import Comparison, LayerDifference, Parting
from dlplay.twins.pair import Twins

if TYPE_CHECKING:
    twins = Twins
else:
    twins = sys.modules[__name__]

__all__ = ["Comparison", "LayerDifference", "Parting", "Twins", "twins"]


class _Callable(ModuleType):
    """A package that is also the function of its name.

    After ``import dlplay.twins`` Python binds the package to that name, whatever stood there; so
    the package itself has to be what one calls.
    """

    def __call__(
        self,
        torch_model: Any,
        keras_model: Any,
        example: Any = None,
        match: Mapping[str, str] | None = None,
        layout: str | None = None,
    ) -> Twins:
        """Pair a PyTorch model with a Keras model; see ``Twins``."""
        return Twins(torch_model, keras_model, example, match, layout)


sys.modules[__name__].__class__ = _Callable
