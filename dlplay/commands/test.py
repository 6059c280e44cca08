"""``dlplay test``: the package's tests, every notebook, and the labs in a real browser."""

import argparse
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from dlplay import resources
from dlplay.errors import DlplayError

_TOOLS = ("pytest", "pytest_timeout", "nbval", "playwright", "hypothesis", "build")
_INSTALL = 'pip install -e ".[test]"'

PACKAGE = ("The package", ["tests", "--ignore=tests/browser"])
NOTEBOOKS = ("The notebooks", ["--nbval", "--nbval-current-env", "notebooks"])
BROWSER = ("The labs in a browser", ["tests/browser"])


def run(arguments: argparse.Namespace) -> int:
    """Run the parts one after the other, each in its own process; the worst status counts.

    Raises
    ------
    DlplayError
        Without a checkout, or without the packages that the tests need.
    """
    root = _checkout()
    missing = [tool.replace("_", "-") for tool in _TOOLS if find_spec(tool) is None]
    if missing:
        raise DlplayError(
            f"The tests need {', '.join(missing)}: install with `{_INSTALL}` in the checkout."
        )
    parts = [PACKAGE] if arguments.quick else [PACKAGE, NOTEBOOKS, BROWSER]
    return max(_run_part(root, title, options) for title, options in parts)


def _checkout() -> Path:
    root = Path(resources.__file__).resolve().parents[1]
    if not resources.in_checkout() or not (root / "tests").is_dir():
        raise DlplayError(
            "`dlplay test` needs a checkout of dlplay's source, tests included:"
            f" clone its repository and run `{_INSTALL}` there."
        )
    return root


def _run_part(root: Path, title: str, options: list[str]) -> int:
    print(f"\n{title}: pytest {' '.join(options)}", flush=True)
    status = subprocess.call([sys.executable, "-m", "pytest", *options], cwd=root)
    return status if status >= 0 else 128 - status  # ended by a signal
