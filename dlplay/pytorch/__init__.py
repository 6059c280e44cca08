"""The PyTorch wing: everything in dlplay that touches torch.

Its rooms are modules; ``dlplay/keras`` has the same ones with the same public names.
Images come in channels-last (NumPy) and become channels-first in here.
"""

from dlplay.pytorch import (
    arrays,
    clipping,
    devices,
    initializers,
    layers,
    losses,
    networks,
    optimizers,
    precision,
    probes,
    reconciled,
    regularizers,
    rules,
    schedules,
    seeds,
    steps,
    structure,
    tracing,
    trajectories,
    variables,
)

__all__ = [
    "arrays",
    "clipping",
    "devices",
    "initializers",
    "layers",
    "losses",
    "networks",
    "optimizers",
    "precision",
    "probes",
    "reconciled",
    "regularizers",
    "rules",
    "schedules",
    "seeds",
    "steps",
    "structure",
    "tracing",
    "trajectories",
    "variables",
]
