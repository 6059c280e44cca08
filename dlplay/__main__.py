"""``python -m dlplay`` is the command ``dlplay``."""

import sys

from dlplay.cli import main

if __name__ == "__main__":
    sys.exit(main())
