"""A cell that runs again replaces its lab: the old one is closed, and its run with it."""

from typing import Any, Protocol


class Lab(Protocol):
    """What a cell can hold."""

    def close(self) -> None:
        """End what the lab does and take it off the page."""


_labs: dict[str, list[Lab]] = {}
_counts: dict[str, int] = {}


def replace(lab: Lab) -> None:
    """Close the labs that an earlier run of the present cell has made, and note this one.

    Outside a notebook, or where the front end does not name its cells, nothing is closed.
    """
    cell, count = _present_cell()
    if not cell:
        return
    if _counts.get(cell) != count:
        for old in _labs.pop(cell, []):
            old.close()
        _counts[cell] = count
    _labs.setdefault(cell, []).append(lab)


def _present_cell() -> tuple[str, int]:
    """The cell's id, as JupyterLab sends it, and the number of its execution."""
    from IPython import get_ipython

    shell = get_ipython()
    parent: dict[str, Any] = getattr(shell, "get_parent", dict)() or {}
    return parent.get("metadata", {}).get("cellId", ""), getattr(shell, "execution_count", 0)
