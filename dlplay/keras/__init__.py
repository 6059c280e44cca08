"""The Keras wing: everything in dlplay that touches keras and tensorflow.

Its rooms are modules; ``dlplay/pytorch`` has the same ones with the same public names.
Images are channels-last, as in NumPy. Steps are compiled with ``tf.function``, so the wing needs
the TensorFlow backend.
"""

import keras

from dlplay.errors import DlplayError

if keras.backend.backend() != "tensorflow":
    raise DlplayError(
        f"Keras runs on its {keras.backend.backend()!r} backend here, but dlplay compiles Keras's"
        " steps with TensorFlow: start the kernel again with KERAS_BACKEND=tensorflow."
    )

from dlplay.keras import (
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
