"""Settings of how the learning rate moves."""

import math
from dataclasses import dataclass

from dlplay.settings.fields import Setting, choice, number, whole


@dataclass(frozen=True)
class Schedule(Setting):
    """How the learning rate moves: a factor on ``Run.learning_rate`` for each step.

    ``warmup`` is the share of all steps in which the factor first rises linearly to 1. In what is
    left,

    - ``"constant"`` stays, ``"linear"`` falls to ``final`` by equal amounts, ``"exponential"`` by
      equal factors, ``"polynomial"`` by ``power``, ``"cosine"`` by half a cosine;
    - ``"cosine-restarts"`` does so ``cycles`` times, each cycle ``growth`` times as long as the one
      before (Loshchilov and Hutter 2017);
    - ``"step"`` falls by ``drop`` at one third and at two thirds, ``"multi-step"`` at the
      shares ``first_drop`` and ``second_drop``;
    - ``"inverse-sqrt"`` falls with the square root of the step, from the length of the warm-up on
      (Vaswani et al. 2017);
    - ``"triangular"`` rises from ``final`` to 1 and falls back, ``cycles`` times (Smith 2017);
    - ``"one-cycle"`` rises from ``start`` to 1 until ``peak``, then falls to ``final``, by half a
      cosine (Smith and Topin 2018).
    """

    name: str = choice(
        "constant",
        "step",
        "exponential",
        "cosine",
        "linear",
        "multi-step",
        "polynomial",
        "inverse-sqrt",
        "cosine-restarts",
        "triangular",
        "one-cycle",
    )
    warmup: float = number(0.0, high=1.0, below=True)
    final: float = number(0.01, above=True, high=1.0)
    drop: float = number(0.5, above=True, high=1.0)
    first_drop: float = number(0.5, above=True, high=1.0, below=True)
    second_drop: float = number(0.75, above=True, high=1.0, below=True)
    power: float = number(2.0, above=True, high=10.0)
    cycles: int = whole(3, low=1, high=1000)
    growth: int = whole(1, low=1, high=10)
    start: float = number(0.04, above=True, high=1.0)
    peak: float = number(0.3, above=True, high=1.0, below=True)

    def factor(self, step: int, steps: int) -> float:
        """The factor at a step, from 0, of a run of ``steps`` steps."""
        warm = self.warm_steps(steps)
        return (step + 1) / warm if step < warm else self._after(step - warm, steps - warm, warm)

    def _after(self, step: int, rest: int, warm: int) -> float:
        share = min(step / max(rest - 1, 1), 1.0)
        match self.name:
            case "step" | "multi-step":
                return self.drop ** sum(step >= turn for turn in self.turns(rest))
            case "exponential":
                return self.final**share
            case "cosine":
                return self._half_cosine(1, self.final, share)
            case "linear":
                return 1 - share + self.final * share
            case "polynomial":
                return self.final + (1 - self.final) * (1 - share) ** self.power
            case "inverse-sqrt":
                return math.sqrt(max(warm, 1) / (max(warm, 1) + step))
        return self._around(step, rest)

    def _around(self, step: int, rest: int) -> float:
        match self.name:
            case "cosine-restarts":
                length = self.first_cycle(rest)
                while step >= length:
                    step, length = step - length, length * self.growth
                return self._half_cosine(1, self.final, step / length)
            case "triangular":
                half = self.half_cycle(rest)
                away = abs(step % (2 * half) - half) / half
                return self.final + (1 - self.final) * (1 - away)
            case "one-cycle":
                top = self.peak_step(rest)
                if step <= top:
                    return self._half_cosine(self.start, 1, step / top)
                return self._half_cosine(1, self.final, (step - top) / max(rest - 1 - top, 1))
        return 1.0

    @staticmethod
    def _half_cosine(first: float, last: float, share: float) -> float:
        return last + (first - last) * (1 + math.cos(math.pi * min(share, 1.0))) / 2

    def warm_steps(self, steps: int) -> int:
        """How many of ``steps`` steps the warm-up takes."""
        return round(self.warmup * steps)

    def turns(self, rest: int) -> tuple[int, ...]:
        """The steps, of ``rest`` after the warm-up, at which the factor drops."""
        if self.name == "step":
            return tuple(max(-(-third * (rest - 1) // 3), 1) for third in (1, 2))
        shares = sorted((self.first_drop, self.second_drop))
        return tuple(max(round(share * rest), 1) for share in shares)

    def first_cycle(self, rest: int) -> int:
        """The length of the first cosine, so that ``cycles`` of them fill ``rest`` steps."""
        return max(-(-rest // sum(self.growth**cycle for cycle in range(self.cycles))), 1)

    def half_cycle(self, rest: int) -> int:
        """The steps in which a triangle rises, and in which it falls."""
        return max(round(rest / (2 * self.cycles)), 1)

    def peak_step(self, rest: int) -> int:
        """The step at which one cycle is highest."""
        return max(round(self.peak * (rest - 1)), 1)
