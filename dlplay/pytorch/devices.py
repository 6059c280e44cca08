"""Where PyTorch computes, and on how many threads."""

import os

import torch

from dlplay.errors import SettingError
from dlplay.settings import Placement


def available() -> list[str]:
    """The devices PyTorch sees, in its own words: ``["cpu", "cuda:0"]``."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return ["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]


def resolve(placement: Placement) -> str:
    """The device that a placement means on this machine.

    Raises
    ------
    SettingError
        Where a GPU is asked for and PyTorch sees none.
    """
    gpus = available()[1:]
    if placement.device == "gpu" and not gpus:
        raise SettingError("PyTorch sees no GPU here: set Placement.device to 'auto' or 'cpu'.")
    return "cpu" if placement.device == "cpu" or not gpus else gpus[0]


def limit_threads() -> None:
    """Leave one core free for the browser and the kernel; call it in the thread that trains.

    With as many OpenMP threads as cores, any other busy process can stall the whole team at each
    barrier. ``python -m benchmarks.steps`` shows what one thread fewer costs.
    """
    torch.set_num_threads(max(1, (os.cpu_count() or 2) - 1))
