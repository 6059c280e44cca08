"""Two models that should be the same, one in each framework."""

from typing import Any

import numpy as np

from dlplay.errors import ModelError
from dlplay.frameworks import WINGS, load_wing, title
from dlplay.records import Layer
from dlplay.twins.comparison import Comparison, compare_arrays


class Twins:
    """A PyTorch model and a Keras model whose layers correspond one to one.

    Parameters
    ----------
    torch_model : torch.nn.Module
    keras_model : keras.Model
    example : numpy.ndarray
        A few inputs, batch first, images channels-last; PyTorch's copy becomes channels-first.

    Raises
    ------
    ModelError
        Where the layers that have weights do not correspond; it names the first pair.
    """

    def __init__(self, torch_model: Any, keras_model: Any, example: np.ndarray) -> None:
        self._wings = {wing: load_wing(wing) for wing in WINGS}
        self._models = {"pytorch": torch_model, "keras": keras_model}
        self._example = np.asarray(example)
        self.alignment = self._align()

    def copy_weights(self, source: str = "pytorch") -> None:
        """Copy all weights and states from the ``source`` wing's model into the other."""
        if source not in WINGS:
            raise ModelError(f"source is {source!r}, but must be one of: {', '.join(WINGS)}.")
        (target,) = set(WINGS) - {source}
        layers = self._read(source)
        model, example = self._models[target], self._input(target, self._example)
        self._wings[target].layers.write(model, example, layers)

    def compare(self, x: np.ndarray | None = None) -> Comparison:
        """Compare weights, then outputs on ``x`` (the example where it is left out)."""
        pairs = zip(self._read("pytorch"), self._read("keras"), strict=True)
        differences = [
            compare_arrays(f"{torch.name} {key}", f"{keras.name} {key}", array, keras.arrays[key])
            for torch, keras in pairs
            for key, array in torch.arrays.items()
        ]
        x = self._example if x is None else np.asarray(x)
        outputs = [self._outputs(wing, x) for wing in WINGS]
        return Comparison((*differences, compare_arrays("output", "output", *outputs)))

    def _read(self, wing: str) -> list[Layer]:
        return self._wings[wing].layers.read(self._models[wing], self._input(wing, self._example))

    def _outputs(self, wing: str, x: np.ndarray) -> np.ndarray:
        outputs = self._wings[wing].layers.infer(self._models[wing], self._input(wing, x))
        return self._wings[wing].arrays.to_numpy(outputs)

    def _input(self, wing: str, x: np.ndarray) -> Any:
        room = self._wings[wing]
        return room.arrays.to_tensor(x, *room.layers.home(self._models[wing]))

    def _align(self) -> list[tuple[Layer, Layer]]:
        torch, keras = self._read("pytorch"), self._read("keras")
        for one, other in zip(torch, keras, strict=False):
            shapes = [{k: a.shape for k, a in layer.arrays.items()} for layer in (one, other)]
            if one.kind != other.kind or shapes[0] != shapes[1]:
                raise ModelError(
                    f"These are no twins: {title('pytorch')} layer {one.name!r} ({one.kind},"
                    f" {shapes[0]}) stands against {title('keras')} layer {other.name!r}"
                    f" ({other.kind}, {shapes[1]})."
                )
        if len(torch) != len(keras):
            more = (torch if len(torch) > len(keras) else keras)[min(len(torch), len(keras))]
            raise ModelError(
                f"These are no twins: {len(torch)} PyTorch layers with weights stand against"
                f" {len(keras)} Keras layers; {more.name!r} ({more.kind}) is the first left over."
            )
        return list(zip(torch, keras, strict=True))


def twins(torch_model: Any, keras_model: Any, example: np.ndarray) -> Twins:
    """Pair a PyTorch model with a Keras model; see ``Twins``."""
    return Twins(torch_model, keras_model, example)
