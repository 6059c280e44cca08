"""Two models that should be the same, one in each framework."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dlplay.errors import ModelError
from dlplay.frameworks import WINGS, load_wing
from dlplay.records import Layer
from dlplay.settings import Optimizer
from dlplay.traces import Trace, Visit, first_visits, fitting
from dlplay.twins import examples, reconciling, session
from dlplay.twins.alignment import Pair, align
from dlplay.twins.comparison import Comparison
from dlplay.twins.tables import Rows, as_html, as_text

_TITLE = {"pytorch": "PyTorch", "keras": "Keras"}


class Alignment(tuple[Pair, ...]):
    """The pairs of corresponding layers, in PyTorch's order of execution; a table to look at."""

    def _table(self) -> Rows:
        rows = [["PyTorch", "Keras", "kind", "arrays"]]
        for pair in self:
            names = [visit.name if visit else "" for visit in (pair.torch, pair.keras)]
            one = pair.torch or pair.keras
            assert one is not None
            arrays = [f"{key} {' x '.join(map(str, a.shape))}" for key, a in one.arrays.items()]
            rows.append([*names, pair.kind, ", ".join(arrays)])
        return rows

    def __str__(self) -> str:
        return as_text(self._table())

    def _repr_html_(self) -> str:
        return as_html(self._table())


class Twins:
    """A PyTorch model and a Keras model whose layers correspond.

    Parameters
    ----------
    torch_model : torch.nn.Module
    keras_model : keras.Model
        Built from the example where it is not built yet.
    example : numpy.ndarray or tuple of numpy.ndarray, optional
        A few inputs, batch first, images channels-last; PyTorch's copy becomes channels-first.
        Several inputs are a tuple. Where it is left out, it is drawn in the shape that the Keras
        model tells.
    match : mapping of str to str, optional
        PyTorch layers' names to the Keras layers' that they are, where the order does not tell.
    layout : str, optional
        ``"channels_last"`` or ``"channels_first"``: of the example, where it could be both.

    Attributes
    ----------
    alignment : Alignment
        Which layer corresponds to which; prints as a table.

    Raises
    ------
    ModelError
        Where the layers that have weights do not correspond, or a model cannot be read; one
        sentence names the layer and the reason.
    """

    def __init__(
        self,
        torch_model: Any,
        keras_model: Any,
        example: Any = None,
        match: Mapping[str, str] | None = None,
        layout: str | None = None,
    ) -> None:
        self.wings = {wing: load_wing(wing) for wing in WINGS}
        self.models = {"pytorch": torch_model, "keras": keras_model}
        for wing in WINGS:
            self.wings[wing].structure.check(self.models[wing])
        self._layout, self._match = layout, match
        self.example = examples.complete(self.models["keras"], example)
        self.example = self._channels_last(self.example)
        examples.build(self.wings["keras"], keras_model, self.example)
        self._one_home()
        traces = {wing: self._follow(wing) for wing in WINGS}
        self.visits = {wing: traces[wing].visits for wing in WINGS}
        self.alignment = Alignment(self.align(self.visits))

    def copy_weights(self, source: str = "pytorch") -> None:
        """Copy all weights and states from the ``source`` wing's model into the other.

        Raises
        ------
        ModelError
            For an unknown source, or an array that does not fit; then nothing is written.
        """
        if source not in WINGS:
            raise ModelError(f"source is {source!r}, but must be one of: {', '.join(WINGS)}.")
        (target,) = set(WINGS) - {source}
        ready: list[Any] = []
        for giver, taker in self._givers(source):
            if taker.part.slots or giver.part.slots:
                ready += fitting(_TITLE[target], taker, self._read(source, giver))
        self.wings[target].variables.assign(ready)

    def compare(
        self,
        x: Any = None,
        y: Any = None,
        loss: Any = None,
        optimizer: Optimizer | None = None,
        steps: int = 0,
        learning_rate: float = 0.01,
        training: bool | None = None,
    ) -> Comparison:
        """Compare outputs, and with ``y`` gradients, and with ``steps`` updates, layer by layer.

        Parameters
        ----------
        x : numpy.ndarray or tuple of numpy.ndarray, optional
            Inputs; the example where it is left out.
        y : numpy.ndarray, optional
            Labels (whole numbers) or targets. With them, gradients are compared too.
        loss : str or dict, optional
            The name of a function in both wings' ``losses``, or such a function for each of
            ``"pytorch"`` and ``"keras"``: f(output, y). Else cross-entropy for labels and mean
            squared error for targets.
        optimizer : settings.Optimizer, optional
            The rule for the updates: SGD without momentum where it is left out.
        steps : int
            How many steps to make on this batch.
        training : bool, optional
            Compare in training mode, with dropout off: batch normalization then takes the
            batch's statistics. By default, where ``y`` is given.

        Raises
        ------
        ModelError
            For inputs that do not fit, or steps without ``y``.
        """
        given = self.example if x is None else self._channels_last(examples.arrays(x))
        rule = Optimizer("sgd", momentum=0.0) if optimizer is None else optimizer
        question = session.Question(
            given,
            y,
            loss,
            rule,
            steps,
            learning_rate,
            y is not None if training is None else training,
        )
        return session.compare(self, question)

    def reconcile(self, apply: str | None = None) -> reconciling.Reconciliation:
        """What to change so that the two compute the same, as code for either framework.

        Parameters
        ----------
        apply : str, optional
            ``"pytorch"`` or ``"keras"``: also set in that wing's model what can be set in place.
        """
        return reconciling.reconcile(self, apply)

    def align(self, visits: dict[str, list[Visit]]) -> list[Pair]:
        """Pair other passes of the same models, as this pair was."""
        return align(visits["pytorch"], visits["keras"], self._match)

    def _follow(self, wing: str) -> Trace:
        room, model = self.wings[wing], self.models[wing]
        with room.structure.kept(model):
            given = tuple(array[:2] for array in self.example)
            inputs = room.structure.as_inputs(model, examples.telling(given))
            return room.tracing.follow(model, inputs)

    def _givers(self, source: str) -> list[tuple[Visit, Visit]]:
        """Pairs of visits to copy between, from the source's; a layer that is shared comes once."""
        both = [(pair.torch, pair.keras) for pair in self.alignment if pair.torch and pair.keras]
        ordered = both if source == "pytorch" else [(keras, torch) for torch, keras in both]
        once = {id(visit) for visit in first_visits(taker for _, taker in ordered)}
        return [(giver, taker) for giver, taker in ordered if id(taker) in once]

    def _read(self, wing: str, visit: Visit) -> Layer:
        values = self.wings[wing].variables.values
        arrays = {key: values(slot) for key, slot in visit.part.slots.items()}
        return Layer(visit.name, visit.kind, arrays)

    def _channels_last(self, given: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        return examples.channels_last(self.models["keras"], given, self._layout)

    def _one_home(self) -> None:
        """Both models must compute in the same type; the devices may differ in spelling."""
        homes = {wing: self.wings[wing].layers.home(self.models[wing]) for wing in WINGS}
        types = {wing: home[0].name for wing, home in homes.items()}
        if len(set(types.values())) > 1:
            raise ModelError(
                f"The PyTorch model computes in {types['pytorch']}, the Keras model in"
                f" {types['keras']}: bring them to one type (model.double(), or"
                " keras.config.set_floatx before the model is made)."
            )
        gpu = {wing: not home[1].lower().startswith("cpu") for wing, home in homes.items()}
        if gpu["pytorch"] != gpu["keras"]:
            raise ModelError(
                f"The PyTorch model is on {homes['pytorch'][1]}, the Keras model on"
                f" {homes['keras'][1]}: move them to the same device."
            )
