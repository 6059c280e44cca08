"""Where TensorFlow computes, and on how many threads."""

import tensorflow as tf

from dlplay.errors import SettingError
from dlplay.settings import Placement


def available() -> list[str]:
    """The devices TensorFlow sees, in its own words: ``["CPU:0", "GPU:0"]``."""
    return [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices()]


def resolve(placement: Placement) -> str:
    """The device that a placement means on this machine.

    Raises
    ------
    SettingError
        Where a GPU is asked for and TensorFlow sees none.
    """
    gpus = [name for name in available() if name.startswith("GPU")]
    if placement.device == "gpu" and not gpus:
        raise SettingError("TensorFlow sees no GPU here: set Placement.device to 'auto' or 'cpu'.")
    return "CPU:0" if placement.device == "cpu" or not gpus else gpus[0]


def limit_threads() -> None:
    """Leave TensorFlow's pool as it is: its threads do not wait for each other at barriers.

    Its size can only be set before the first operation, which may have been the reader's own.
    ``python -m benchmarks.steps`` shows that it needs no limit.
    """
