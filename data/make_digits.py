"""Makes digits.npz again, byte for byte, from scikit-learn's copy of the UCI set.

Run it where scikit-learn is installed (dlplay itself does not need it)::

    python data/make_digits.py

The arrays are stored without compression (117 kB): the same bytes whichever zlib is there, on
Linux and macOS (on Windows a zip file names its system, so one byte in each entry differs).
"""

import hashlib
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def main() -> None:
    """Write digits.npz beside this script and print its SHA-256."""
    digits = load_digits()
    path = Path(__file__).with_name("digits.npz")
    images, labels = digits.images.astype(np.uint8), digits.target.astype(np.uint8)
    np.savez(path, images=images, labels=labels)
    print(f"{path.name}: {images.shape}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
