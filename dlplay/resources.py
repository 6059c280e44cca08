"""Finds what travels with the package: notebooks and data, in a checkout and in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder ``"notebooks"`` or ``"data"``: inside an installed wheel, or beside the package.

    Raises
    ------
    FileNotFoundError
        Where neither is there, which means a broken installation.
    """
    for place in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(
        f"dlplay's {name} are missing from this installation: install it again with"
        " `pip install --force-reinstall dlplay`."
    )


def in_checkout() -> bool:
    """Say whether dlplay runs from a checkout of its source (an editable installation)."""
    return not (_PACKAGE / "_notebooks").is_dir()
