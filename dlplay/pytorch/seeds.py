"""What PyTorch's random draws start from."""

import torch


def seed(value: int) -> None:
    """Seed PyTorch's generators on every device (``torch.manual_seed``)."""
    torch.manual_seed(value)
