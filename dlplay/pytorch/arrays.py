"""NumPy arrays into PyTorch tensors and back; images change their layout here, and only here."""

import numpy as np
import torch

from dlplay.pytorch.precision import dtype
from dlplay.settings import Precision


def to_tensor(array: np.ndarray, precision: Precision, device: str) -> torch.Tensor:
    """Move an array to a device.

    Floating-point arrays take the precision's type; images, (batch, height, width, channels), and
    volumes become channels-first. Whole numbers stay int64.
    """
    if array.dtype.kind != "f":
        return torch.from_numpy(np.asarray(array, dtype=np.int64)).to(device)
    if array.ndim >= 4:
        array = np.moveaxis(array, -1, 1)
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, dtype(precision))


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """Fetch a tensor, images back in channels-last; bfloat16 becomes float32."""
    tensor = tensor.detach().cpu()
    array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return np.moveaxis(array, 1, -1) if array.ndim >= 4 else array
