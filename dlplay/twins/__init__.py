"""Pairs a PyTorch model with a Keras model: align their layers, copy weights, compare."""

from dlplay.twins.comparison import Comparison, LayerDifference
from dlplay.twins.pair import Twins, twins

__all__ = ["Comparison", "LayerDifference", "Twins", "twins"]
