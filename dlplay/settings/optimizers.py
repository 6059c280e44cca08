"""Settings of the rule that turns gradients into updates."""

import struct
from dataclasses import dataclass

from dlplay.errors import SettingError
from dlplay.settings.fields import Setting, choice, flag, number


@dataclass(frozen=True)
class Optimizer(Setting):
    """The rule that turns gradients into updates; the same values go to both frameworks.

    ``momentum``, ``nesterov`` and ``dampening`` are SGD's; ``beta_1`` and ``beta_2`` are those of
    the Adam family and of Lion, and ``beta_2`` is also the smoothing constant of RMSprop and
    Adadelta. ``epsilon`` is written into both, because their own defaults differ (Adam: 1e-8 in
    PyTorch, 1e-7 in Keras).

    ``weight_decay`` goes to each framework's own argument: decoupled in ``"adamw"`` and in all of
    Keras's optimizers, added to the gradient in PyTorch's others (Loshchilov and Hutter 2019).
    It reaches all parameters, or only the kernels: no bias, no scale of a normalization.

    ``clipping`` at ``clip_at`` is by the norm of all gradients together (``"global_norm"``), of
    each gradient (``"norm"``) or by value.

    ``like`` tells whose formula is used where the two differ: each framework its ``"own"``, or
    both the one of ``"pytorch"`` or of ``"keras"``.
    """

    name: str = choice(
        "sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "lion"
    )
    momentum: float = number(0.9, high=1.0, below=True)
    nesterov: bool = flag(False)
    beta_1: float = number(0.9, high=1.0, below=True)
    beta_2: float = number(0.999, high=1.0, below=True)
    epsilon: float = number(1e-7, above=True, high=1.0)
    weight_decay: float = number(0.0, high=1.0)
    like: str = choice("own", "pytorch", "keras")
    decayed: str = choice("all", "kernels")
    clipping: str = choice("none", "global_norm", "norm", "value")
    clip_at: float = number(1.0, above=True)
    #: SGD: how much of a new gradient is kept out of the buffer. PyTorch only.
    dampening: float = number(0.0, high=1.0)
    #: Adam and AdamW: divide by the largest second moment so far (Reddi et al. 2018).
    amsgrad: bool = flag(False)
    #: RMSprop: divide by the variance of the gradients instead of their mean square.
    centered: bool = flag(False)
    #: RMSprop's momentum; ``momentum`` itself is SGD's.
    rmsprop_momentum: float = number(0.0, high=1.0, below=True)
    #: NAdam: how fast its momentum grows. Keras's own is fixed at 1.
    momentum_decay: float = number(0.004, high=1.0)
    #: Adagrad: what the sum of squares starts from.
    initial_accumulator: float = number(0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dampening and self.nesterov:
            raise SettingError(
                "Optimizer.nesterov and Optimizer.dampening do not go together in PyTorch:"
                " set one of them to False or 0."
            )


def rounded(number: float) -> float:
    """The nearest float32: what stock Keras makes of a number that it casts."""
    return struct.unpack("f", struct.pack("f", number))[0]
