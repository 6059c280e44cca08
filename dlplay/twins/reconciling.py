"""What to change in either model so that both compute the same, as code; or changed in place."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlplay.errors import ModelError
from dlplay.frameworks import WINGS
from dlplay.twins.differences import find
from dlplay.twins.tables import Rows, as_html, as_text

if TYPE_CHECKING:
    from dlplay.twins.pair import Twins


@dataclass(frozen=True)
class Change:
    """One difference between two layers, and the code that removes it, in either framework.

    ``applied`` says in which wing it has been removed, if in any.
    """

    name: str
    torch: str
    keras: str
    values: tuple[Any, Any]
    in_torch: str
    in_keras: str
    sources: tuple[str, ...] = ()
    applied: str = ""


class Reconciliation(tuple[Change, ...]):
    """All changes, in order of execution; prints as a table, or as code for one framework."""

    def code(self, wing: str) -> str:
        """The changes to one framework's model alone, one a line."""
        return "\n".join(c.in_torch if wing == "pytorch" else c.in_keras for c in self)

    def _table(self) -> Rows:
        rows = [["difference", "PyTorch", "Keras", "in PyTorch", "or in Keras"]]
        for c in self:
            both = [f"{c.torch}: {c.values[0]}", f"{c.keras}: {c.values[1]}"]
            done = f" (applied in {c.applied})" if c.applied else ""
            rows.append([c.name + done, *both, c.in_torch, c.in_keras])
        return rows

    def __str__(self) -> str:
        return as_text(self._table()) if self else "No option differs: nothing to reconcile."

    def _repr_html_(self) -> str:
        return as_html(self._table()) if self else f"<p>{self}</p>"


def reconcile(twins: "Twins", apply: str | None) -> Reconciliation:
    """List every option that differs between corresponding layers."""
    if apply is not None and apply not in WINGS:
        raise ModelError(f"apply is {apply!r}, but must be one of: {', '.join(WINGS)}.")
    changes = []
    for pair in twins.alignment:
        for option, values in pair.differing().items():
            torch, keras = pair.torch, pair.keras
            assert torch is not None
            assert keras is not None
            entry = find(pair.kind, option)
            code = entry.code(torch.name, keras.name, values)
            applied = apply or ""
            if not apply or not _set(apply, entry.attributes, torch.layer, keras.layer, values):
                applied = ""
            ways = (code["pytorch"], code["keras"])
            names = (torch.name, keras.name)
            changes.append(Change(entry.name, *names, values, *ways, entry.sources, applied))
    return Reconciliation(changes)


def _set(
    wing: str, attributes: tuple[str, str] | None, torch: Any, keras: Any, values: tuple[Any, Any]
) -> bool:
    """Set one value on a layer in place; False where it has to be made anew."""
    layer = torch if wing == "pytorch" else keras
    if attributes is None or layer is None:
        return False
    if wing == "keras":
        setattr(layer, attributes[1], values[0])
        return True
    own = 1 - values[1] if attributes[0] == "momentum" else values[1]
    setattr(layer, attributes[0], own)
    return True
