"""What comparing two models found, layer by layer, as text, as HTML and as plain data."""

from dataclasses import dataclass, field
from typing import Any

from dlplay.twins.explanations import Explanation
from dlplay.twins.measures import TOLERANCE, Gap
from dlplay.twins.tables import Rows, as_html, as_text


@dataclass(frozen=True)
class LayerDifference:
    """How far one pair of layers is apart.

    Attributes
    ----------
    torch, keras : str
        The layers' names; empty where one framework has nothing there.
    kind : str
        The canonical kind.
    output, gradient : Gap or None
        Of the output, and of the loss's gradient by it; None where it cannot be seen in both.
    weights, weight_gradients : dict of str to Gap
        Of each canonical array. A gradient's scale is the largest gradient in its layer, so that
        one that is zero in theory, and rounding in fact, does not count.
    updates : dict of int to dict of str to Gap
        After so many steps, of each array; the scale is the array's largest update so far.
    options : dict of str to tuple
        Options that differ: PyTorch's value and Keras's.
    """

    torch: str
    keras: str
    kind: str
    output: Gap | None = None
    gradient: Gap | None = None
    weights: dict[str, Gap] = field(default_factory=dict)
    weight_gradients: dict[str, Gap] = field(default_factory=dict)
    updates: dict[int, dict[str, Gap]] = field(default_factory=dict)
    options: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Both names, as a sentence needs them."""
        return " / ".join(name or "(nothing)" for name in (self.torch, self.keras))

    def largest(self, stage: str) -> Gap | None:
        """The largest difference of one stage: ``"weights"``, ``"output"``, ..."""
        found: dict[str, list[Gap | None]] = {
            "output": [self.output],
            "gradient": [self.gradient, *self.weight_gradients.values()],
            "weights": [*self.weights.values()],
            "update": [gap for arrays in self.updates.values() for gap in arrays.values()],
        }
        gaps = [gap for gap in found[stage] if gap is not None]
        return max(gaps, key=lambda gap: gap.relative, default=None)


@dataclass(frozen=True)
class Parting:
    """The first place where two models part, and what accounts for it.

    ``stage`` is ``"output"``, ``"gradient"`` or ``"update"``; ``between`` says that the layer's
    own input differs already, though all layers before it agree.
    """

    stage: str
    layer: LayerDifference
    gap: Gap
    between: bool = False
    explanations: tuple[Explanation, ...] = ()
    verdict: str = ""

    def __str__(self) -> str:
        what = "inputs" if self.between else {"output": "outputs"}.get(self.stage, self.stage + "s")
        lines = [f"They part at {self.layer.place}: {what} differ by {self.gap} (relative)."]
        lines += [str(explanation) for explanation in self.explanations]
        if not self.explanations:
            lines.append("No difference that dlplay knows accounts for it.")
        return "\n".join([*lines, *filter(None, [self.verdict])])


@dataclass(frozen=True)
class Comparison:
    """How far two models are apart: each pair of layers in PyTorch's order of execution.

    Attributes
    ----------
    layers : tuple of LayerDifference
    output : Gap
        Of what the models give.
    losses : tuple of tuple of float
        PyTorch's loss and Keras's before each step; the first is that of the comparison.
    dtype : str
        In which both computed.
    first : Parting or None
        Where they part first, beyond ``tolerance``.
    left_out : tuple of str
        Arrays whose gradient is rounding alone (a bias before batch normalization): their
        updates are not compared, since Adam makes whole steps of rounding.
    rounding : str
        Where something is beyond the tolerance by rounding alone, how that was found.
    """

    layers: tuple[LayerDifference, ...]
    output: Gap
    losses: tuple[tuple[float, float], ...] = ()
    dtype: str = "float32"
    first: Parting | None = None
    left_out: tuple[str, ...] = ()
    rounding: str = ""

    @property
    def tolerance(self) -> float:
        """The relative difference beyond which models part; ``measures.TOLERANCE`` says why."""
        return TOLERANCE[self.dtype]

    @property
    def agree(self) -> bool:
        """Whether nothing that was compared parts."""
        return self.first is None

    @property
    def largest(self) -> LayerDifference:
        """The layers whose outputs are farthest apart."""
        return max(self.layers, key=lambda layer: layer.output.relative if layer.output else -1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings, for machines."""
        return {
            "agree": self.agree,
            "dtype": self.dtype,
            "tolerance": self.tolerance,
            "output": vars(self.output),
            "losses": [list(pair) for pair in self.losses],
            "layers": [_plain(layer) for layer in self.layers],
            "first": None if self.first is None else _first(self.first),
            "left_out": list(self.left_out),
            "rounding": self.rounding,
        }

    def summary(self) -> str:
        """The result in a few sentences."""
        if self.first is not None:
            text = str(self.first)
        else:
            text = (
                f"The two models agree: outputs differ by {self.output} (relative, {self.dtype};"
                f" tolerance {self.tolerance:.0e})."
            )
        if self.rounding:
            text += f"\n{self.rounding}"
        if self.left_out:
            text += f"\nLeft out, gradient zero in theory: {', '.join(self.left_out)}."
        return text

    def __str__(self) -> str:
        return f"{as_text(self._table())}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        return as_html(self._table(), self.summary())

    def _table(self) -> Rows:
        stages = ["weights", "output", "gradient", "update"]
        used = [s for s in stages if any(layer.largest(s) for layer in self.layers)]
        rows: Rows = [["PyTorch", "Keras", "kind", *used, "options that differ"]]
        for layer in self.layers:
            cells = [str(layer.largest(stage) or "") for stage in used]
            options = ", ".join(f"{k}: {a} | {b}" for k, (a, b) in layer.options.items())
            mark = " <- first" if self.first and layer is self.first.layer else ""
            rows.append([layer.torch, layer.keras, layer.kind, *cells, options + mark])
        return rows


def _plain(value: Any) -> Any:
    if isinstance(value, (Gap, LayerDifference)):
        return {key: _plain(item) for key, item in vars(value).items()}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _first(parting: Parting) -> dict[str, Any]:
    return {
        "stage": parting.stage,
        "torch": parting.layer.torch,
        "keras": parting.layer.keras,
        "gap": vars(parting.gap),
        "between": parting.between,
        "explanations": [explanation.to_dict() for explanation in parting.explanations],
        "verdict": parting.verdict,
    }
