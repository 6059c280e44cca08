"""What a run has measured: arrays that only grow, so that a slice of them never changes."""

import numpy as np

from dlplay.records import Summary
from dlplay.runs.snapshot import Curve


class History:
    """The measurements of one wing.

    Parameters
    ----------
    steps, epochs : int
        How many steps and evaluations there will be at most.
    """

    def __init__(self, steps: int, epochs: int) -> None:
        self._scores = np.empty((steps, 2))
        self._tests = np.empty((epochs, 3))
        self._steps = self._epochs = 0
        self._look: tuple[int, tuple[Summary, ...]] = (-1, ())
        self.seconds = 0.0

    def add(self, scores: np.ndarray) -> None:
        """Append loss and accuracy of some steps, (steps, 2)."""
        end = self._steps + len(scores)
        self._scores[self._steps : end] = scores
        self._steps = end

    def add_test(self, step: int, loss: float, accuracy: float) -> None:
        """Append an evaluation on the test set, made after ``step`` steps."""
        self._tests[self._epochs] = step, loss, accuracy
        self._epochs += 1

    def add_look(self, step: int, summaries: tuple[Summary, ...]) -> None:
        """Keep the newest look inside."""
        self._look = step, summaries

    def curve(self) -> Curve:
        """All so far; nothing in it changes later."""
        scores, tests = self._scores[: self._steps], self._tests[: self._epochs]
        step, summaries = self._look
        return Curve(
            loss=scores[:, 0],
            accuracy=scores[:, 1],
            test_steps=tests[:, 0].astype(np.int64),
            test_loss=tests[:, 1],
            test_accuracy=tests[:, 2],
            seconds=self.seconds,
            summaries=summaries,
            summaries_step=step,
        )
