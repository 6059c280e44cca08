"""One interactive app a topic: settings, a run and a view, in one line of a notebook."""

from dlplay.labs.training import TrainingLab, training

__all__ = ["TrainingLab", "training"]
