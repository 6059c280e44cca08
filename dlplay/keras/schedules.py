"""Keras's learning-rate schedules from settings."""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers import schedules

from dlplay.settings import Schedule


def attach(
    optimizer: keras.optimizers.Optimizer, schedule: Schedule, learning_rate: float, steps: int
) -> schedules.LearningRateSchedule:
    """Let a schedule set the learning rate of an optimizer.

    It is Keras's own class where one has the form that is asked for, and otherwise ours
    (constants, inverse square roots, cycles, a warm-up before any of them). The optimizer evaluates
    it at each step by itself. ``CosineDecayRestarts`` is not used: in a compiled step it can miss a
    restart by one step, because it finds its cycle by a division that is rounded.

    A rate that is a NumPy float64 makes Keras's own classes compute in float64; from a Python
    number they make a float32. It is lost where a model is saved: a file keeps plain numbers.

    Parameters
    ----------
    learning_rate : float
        What the schedule's factors multiply.
    steps : int
        How many steps the run has; the schedule is made for these and no more.

    Source: https://keras.io/api/optimizers/learning_rate_schedules/
    """
    made = _make(schedule, learning_rate, steps)
    optimizer.learning_rate = made
    return made


def rates(schedule: Schedule, learning_rate: float, steps: int) -> np.ndarray:
    """The learning rate of each step, (steps,) float64, by stepping the real schedule."""
    optimizer = keras.optimizers.SGD(learning_rate)
    attach(optimizer, schedule, learning_rate, steps)

    @tf.function
    def step() -> tf.Tensor:
        rate = optimizer.learning_rate
        optimizer.iterations.assign_add(1)
        return rate

    return np.array([step().numpy() for _ in range(steps)], dtype=np.float64)


def _make(schedule: Schedule, learning_rate: float, steps: int) -> schedules.LearningRateSchedule:
    warm = schedule.warm_steps(steps)
    made = _after(schedule, np.float64(learning_rate), steps - warm)
    if made is None:
        return _Formula(schedule.to_dict(), learning_rate, steps)
    return _WarmUp(made, learning_rate, warm) if warm else made


def _after(
    schedule: Schedule, rate: np.float64, rest: int
) -> schedules.LearningRateSchedule | None:
    """Keras's own schedule of the steps after the warm-up, or None."""
    final, last = np.float64(schedule.final), max(rest - 1, 1)
    match schedule.name:
        case "step" | "multi-step":
            turns = schedule.turns(rest)  # Keras changes the rate one step later
            values = [rate * np.float64(schedule.drop) ** n for n in range(len(turns) + 1)]
            return schedules.PiecewiseConstantDecay([turn - 1 for turn in turns], values)
        case "exponential":
            return schedules.ExponentialDecay(rate, last, final)
        case "cosine":
            return schedules.CosineDecay(rate, last, final)
        case "linear" | "polynomial":
            power = schedule.power if schedule.name == "polynomial" else 1.0
            return schedules.PolynomialDecay(rate, last, final * rate, np.float64(power))
    return None


@keras.saving.register_keras_serializable("dlplay", "WarmUp")
class _WarmUp(schedules.LearningRateSchedule):
    """Rises to ``learning_rate`` in ``warm`` steps, then follows another schedule."""

    def __init__(
        self, after: schedules.LearningRateSchedule, learning_rate: float, warm: int
    ) -> None:
        self.after, self.learning_rate, self.warm = after, learning_rate, warm

    def __call__(self, step: Any) -> tf.Tensor:
        now = tf.cast(step, tf.float64)
        rise = self.learning_rate * (now + 1) / self.warm
        later = self.after(tf.maximum(tf.cast(step, tf.int64) - self.warm, 0))
        return tf.where(now < self.warm, rise, tf.cast(later, tf.float64))

    def get_config(self) -> dict[str, Any]:
        after = schedules.serialize(self.after)
        return {"after": after, "learning_rate": self.learning_rate, "warm": self.warm}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "_WarmUp":
        return cls(**{**config, "after": schedules.deserialize(config["after"])})


@keras.saving.register_keras_serializable("dlplay", "Formula")
class _Formula(schedules.LearningRateSchedule):
    """The formulas of ``settings.Schedule`` for which Keras has no class, in float64."""

    def __init__(self, schedule: dict[str, Any], learning_rate: float, steps: int) -> None:
        self.schedule, self.learning_rate, self.steps = schedule, learning_rate, steps
        self._values = Schedule.from_dict(schedule)
        self._warm = self._values.warm_steps(steps)

    def __call__(self, step: Any) -> tf.Tensor:
        now = tf.cast(step, tf.float64)
        after = self._factor(tf.maximum(now - self._warm, 0.0), self.steps - self._warm)
        rise = (now + 1) / max(self._warm, 1)
        return self.learning_rate * tf.where(now < self._warm, rise, after)

    def get_config(self) -> dict[str, Any]:
        return {
            "schedule": self.schedule,
            "learning_rate": self.learning_rate,
            "steps": self.steps,
        }

    def _factor(self, step: tf.Tensor, rest: int) -> tf.Tensor:
        values, warm = self._values, max(self._warm, 1)
        match values.name:
            case "inverse-sqrt":
                return tf.sqrt(warm / (warm + step))
            case "cosine-restarts":
                return _restarts(values, step, rest)
            case "triangular":
                half = values.half_cycle(rest)
                away = tf.abs(tf.math.floormod(step, 2 * half) - half) / half
                return values.final + (1 - values.final) * (1 - away)
            case "one-cycle":
                top = values.peak_step(rest)
                rise = _half_cosine(values.start, 1, step / top)
                fall = _half_cosine(1, values.final, (step - top) / max(rest - 1 - top, 1))
                return tf.where(step <= top, rise, fall)
        return tf.ones_like(step)


def _restarts(values: Schedule, step: tf.Tensor, rest: int) -> tf.Tensor:
    """Keras's own class finds the cycle by a logarithm, which can miss a restart by one step."""
    length = values.first_cycle(rest)
    starts = [
        length * sum(values.growth**n for n in range(cycle)) for cycle in range(values.cycles)
    ]
    factor = tf.ones_like(step)
    for cycle, start in enumerate(starts):
        share = (step - start) / (length * values.growth**cycle)
        factor = tf.where(step >= start, _half_cosine(1, values.final, share), factor)
    return factor


def _half_cosine(first: float, last: float, share: tf.Tensor) -> tf.Tensor:
    return last + (first - last) * (1 + tf.cos(math.pi * tf.minimum(share, 1.0))) / 2
