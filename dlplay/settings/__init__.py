"""What a learner can turn, as frozen, validated dataclasses; no framework is imported here."""

from dataclasses import dataclass

from dlplay.errors import SettingError
from dlplay.frameworks import WINGS
from dlplay.settings.fields import Setting, choice, choices, number, part, whole
from dlplay.settings.losses import Loss
from dlplay.settings.optimizers import Optimizer
from dlplay.settings.schedules import Schedule

#: Data sets that ``dlplay.load`` knows: the first three need no network.
DATASETS = ("digits", "spirals", "moons", "mnist", "fashion-mnist", "cifar10")


@dataclass(frozen=True)
class Network(Setting):
    """One of the kit's own small networks.

    ``"cnn"`` has ``depth`` blocks of a 3x3 convolution and 2x2 max pooling, each with twice the
    channels of the one before, starting from ``width``; then a dense layer of four times
    ``width`` units, and the logits. It needs images. ``"mlp"`` has ``depth`` hidden dense layers
    of ``width`` units.
    """

    kind: str = choice("cnn", "mlp")
    width: int = whole(16, low=1, high=4096)
    depth: int = whole(2, low=1, high=100)
    activation: str = choice("relu", "tanh", "sigmoid", "gelu", "elu", "silu")

    def final_size(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Height and width that a CNN leaves of an image of ``shape`` (height, width, channels).

        Raises SettingError where the data are no images, or nothing would be left of them.
        """
        if len(shape) != 3:
            raise SettingError("A CNN needs images, and these data are none: use Network('mlp').")
        height, width = shape[0] >> self.depth, shape[1] >> self.depth
        if min(height, width) == 0:
            most = min(shape[:2]).bit_length() - 1
            raise SettingError(
                f"Network.depth is {self.depth}, but so many poolings leave nothing of an image of"
                f" {shape[0]}x{shape[1]}: set it to at most {most}."
            )
        return height, width


@dataclass(frozen=True)
class Initializer(Setting):
    """How kernels start; biases start at zero, except with ``"default"``.

    ``"default"`` leaves what the framework does when it is told nothing: PyTorch draws kernels
    and biases from U(-1/sqrt(fan_in), 1/sqrt(fan_in)) (``torch.nn.Linear``), Keras draws kernels
    by Glorot uniform and sets biases to zero (``keras.layers.Dense``). ``gain`` multiplies the
    standard deviation of a drawn kernel. Sources: Glorot and Bengio 2010 (Xavier), He et al.
    2015, Saxe et al. 2014 (orthogonal).
    """

    name: str = choice(
        "default",
        "xavier_uniform",
        "xavier_normal",
        "he_uniform",
        "he_normal",
        "orthogonal",
        "normal",
        "zeros",
    )
    gain: float = number(1.0, above=True, high=100.0)


@dataclass(frozen=True)
class Precision(Setting):
    """In which floating-point type a network computes.

    ``"bfloat16"`` is mixed: weights stay in float32 (``torch.autocast`` by operation, Keras's
    ``mixed_bfloat16`` policy by layer).
    """

    name: str = choice("float32", "float64", "bfloat16")


@dataclass(frozen=True)
class Placement(Setting):
    """Where a network lives: ``"auto"`` takes the GPU (CUDA, MPS) where there is one."""

    device: str = choice("auto", "cpu", "gpu")


@dataclass(frozen=True)
class Seed(Setting):
    """What all random draws start from: initial weights, batch order, dropout."""

    value: int = whole(0, high=2**32 - 1)


@dataclass(frozen=True)
class Run(Setting):
    """Everything that one training run depends on.

    Both wings start from the same weights, drawn by the first of ``wings``, and see the same
    batches in the same order.
    """

    network: Network = part(Network)
    data: str = choice(*DATASETS)
    batch_size: int = whole(32, low=1)
    optimizer: Optimizer = part(Optimizer)
    learning_rate: float = number(0.05, above=True, high=100.0)
    schedule: Schedule = part(Schedule)
    initializer: Initializer = part(Initializer)
    precision: Precision = part(Precision)
    placement: Placement = part(Placement)
    seed: Seed = part(Seed)
    epochs: int = whole(20, low=1, high=10_000)
    wings: tuple[str, ...] = choices(*WINGS)


__all__ = [
    "DATASETS",
    "Initializer",
    "Loss",
    "Network",
    "Optimizer",
    "Placement",
    "Precision",
    "Run",
    "Schedule",
    "Seed",
    "Setting",
]
