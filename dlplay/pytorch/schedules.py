"""PyTorch's learning-rate schedulers from settings."""

import warnings

import numpy as np
import torch
from torch.optim import lr_scheduler

from dlplay.settings import Schedule


def attach(
    optimizer: torch.optim.Optimizer, schedule: Schedule, learning_rate: float, steps: int
) -> lr_scheduler.LRScheduler:
    """Let a scheduler set the learning rate of an optimizer.

    It is PyTorch's own class where one has the form that is asked for, and otherwise ``LambdaLR``
    (polynomials that do not end at 0, inverse square roots, a warm-up before a cycle). Call its
    ``step()`` after each ``optimizer.step()``.

    Parameters
    ----------
    learning_rate : float
        What the schedule's factors multiply.
    steps : int
        How many steps the run has; the scheduler is made for these and no more.

    Source: https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
        group.pop("initial_lr", None)  # of a scheduler before this one
    warm = schedule.warm_steps(steps)
    rest = steps - warm
    if warm and schedule.name in ("triangular", "one-cycle", "inverse-sqrt"):
        return lr_scheduler.LambdaLR(optimizer, lambda step: schedule.factor(step, steps))
    if not warm:
        return _after(optimizer, schedule, learning_rate, rest)
    rise = lr_scheduler.LinearLR(optimizer, 1 / warm, 1.0, max(warm - 1, 1))
    fall = _after(optimizer, schedule, learning_rate, rest)
    return lr_scheduler.SequentialLR(optimizer, [rise, fall], [warm])


def rates(schedule: Schedule, learning_rate: float, steps: int) -> np.ndarray:
    """The learning rate of each step, (steps,) float64, by stepping the real scheduler."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], learning_rate)
    scheduler = attach(optimizer, schedule, learning_rate, steps)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no gradient, and one step past the end
        for _ in range(steps - 1):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    return np.array([*found, optimizer.param_groups[0]["lr"]], dtype=np.float64)


def _after(
    optimizer: torch.optim.Optimizer, schedule: Schedule, learning_rate: float, rest: int
) -> lr_scheduler.LRScheduler:
    """The scheduler of the steps after the warm-up."""
    final, last = schedule.final * learning_rate, max(rest - 1, 1)
    match schedule.name:
        case "step" | "multi-step":
            return lr_scheduler.MultiStepLR(optimizer, schedule.turns(rest), schedule.drop)
        case "exponential":
            return lr_scheduler.ExponentialLR(optimizer, schedule.final ** (1 / last))
        case "cosine":
            return lr_scheduler.CosineAnnealingLR(optimizer, last, final)
        case "linear":
            return lr_scheduler.LinearLR(optimizer, 1.0, schedule.final, last)
        case "cosine-restarts":
            first = schedule.first_cycle(rest)
            growth = schedule.growth
            return lr_scheduler.CosineAnnealingWarmRestarts(optimizer, first, growth, final)
        case "triangular":
            return lr_scheduler.CyclicLR(
                optimizer, final, learning_rate, schedule.half_cycle(rest), cycle_momentum=False
            )
        case "one-cycle" if rest > 1:
            return _one_cycle(optimizer, schedule, learning_rate, rest)
    plain = schedule.replace(warmup=0.0)
    return lr_scheduler.LambdaLR(optimizer, lambda step: plain.factor(step, rest))


def _one_cycle(
    optimizer: torch.optim.Optimizer, schedule: Schedule, learning_rate: float, rest: int
) -> lr_scheduler.LRScheduler:
    """PyTorch counts the rise as a share of all steps, its last one included."""
    return lr_scheduler.OneCycleLR(
        optimizer,
        learning_rate,
        total_steps=rest,
        pct_start=(schedule.peak_step(rest) + 1) / rest,
        cycle_momentum=False,
        div_factor=1 / schedule.start,
        final_div_factor=schedule.start / schedule.final,
    )
