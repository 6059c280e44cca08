"""Trains one wing or both on the same batches, in a background thread, and gives out snapshots."""

from dlplay.runs.audience import View
from dlplay.runs.snapshot import Curve, Snapshot
from dlplay.runs.training import Training, train

__all__ = ["Curve", "Snapshot", "Training", "View", "train"]
