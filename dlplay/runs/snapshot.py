"""What a run hands out: the state of a training at one moment, as plain numbers and NumPy."""

from dataclasses import dataclass, field

import numpy as np

from dlplay.records import Summary

#: Where a run can be. "running" is the only state in which a thread exists.
STATES = ("ready", "preparing", "running", "paused", "stopped", "finished", "failed")


@dataclass(frozen=True)
class Curve:
    """What one wing has measured so far.

    Attributes
    ----------
    loss, accuracy : numpy.ndarray
        (steps so far,) float64: of each training batch, before its update; accuracy is a share.
    test_steps : numpy.ndarray
        (evaluations,) int64: how many steps had been made when the test set was evaluated.
    test_loss, test_accuracy : numpy.ndarray
        (evaluations,) float64.
    seconds : float
        Time spent inside this wing's training steps.
    summaries : tuple of Summary
        The newest look inside: for each layer its activations and its gradients.
    summaries_step : int
        The step at which that look was made; -1 before the first.
    """

    loss: np.ndarray = field(repr=False)
    accuracy: np.ndarray = field(repr=False)
    test_steps: np.ndarray = field(repr=False)
    test_loss: np.ndarray = field(repr=False)
    test_accuracy: np.ndarray = field(repr=False)
    seconds: float = 0.0
    summaries: tuple[Summary, ...] = field(default=(), repr=False)
    summaries_step: int = -1


@dataclass(frozen=True)
class Snapshot:
    """A training at one moment; nothing in it changes afterwards.

    Attributes
    ----------
    state : str
        One of STATES.
    step, steps : int
        Steps made, and steps of the whole run.
    epoch, epochs : int
        The epoch under way, from 1, and how many there are.
    learning_rate : float
        In force at the last step, schedule included.
    elapsed : float
        Seconds of training so far, pauses left out.
    remaining : float or None
        Seconds left at the present pace; None before the pace is known.
    curves : dict of str to Curve
        By wing: ``"pytorch"``, ``"keras"``.
    message : str
        One sentence about what is going on or went wrong; empty where there is nothing to say.
    """

    state: str = "ready"
    step: int = 0
    steps: int = 0
    epoch: int = 0
    epochs: int = 0
    learning_rate: float = 0.0
    elapsed: float = 0.0
    remaining: float | None = None
    curves: dict[str, Curve] = field(default_factory=dict)
    message: str = ""
