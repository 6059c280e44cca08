"""Settings of what is minimised."""

from dataclasses import dataclass

from dlplay.settings.fields import Setting, choice, number


@dataclass(frozen=True)
class Loss(Setting):
    """What is minimised; ``losses.make`` gives it as a function of predictions and targets.

    The first two take logits. ``smoothing`` is theirs: it takes that share of a label's certainty
    and spreads it over all classes (Szegedy et al. 2016). ``delta`` is where Huber's loss turns
    from a square into a line, and smooth L1's ``beta``.
    """

    name: str = choice(
        "cross_entropy",
        "binary_cross_entropy",
        "mean_squared_error",
        "mean_absolute_error",
        "huber",
        "smooth_l1",
        "kl_divergence",
        "poisson",
        "hinge",
        "cosine_similarity",
    )
    smoothing: float = number(0.0, high=1.0)
    delta: float = number(1.0, above=True)
    reduction: str = choice("mean", "sum", "none")
