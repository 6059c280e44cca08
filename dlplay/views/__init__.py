"""Views draw snapshots. They know no framework and train nothing."""

from dlplay.views.training import Painted, TrainingView

__all__ = ["Painted", "TrainingView"]
