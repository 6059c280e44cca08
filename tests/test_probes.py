"""Probes against NumPy, and what they must leave as it was."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from conftest import Wing
from torch import nn

from dlplay import frameworks
from dlplay.records import BINS, POSITIONS, Summary, summaries
from dlplay.settings import Initializer, Network, Precision, Run
from dlplay.twins import twins

SINGLE = Precision()
DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(16, 5)).astype(np.float32)

# -- the reduction --------------------------------------------------------------------------------


def summary_of(wing: Wing, values: np.ndarray) -> Summary:
    """What a probe tells about one tensor."""
    probe = wing.rooms.probes.Probe()
    tensor = torch.from_numpy(values) if wing.name == "pytorch" else tf.constant(values)
    probe.add("layer", "activation", tensor)
    (summary,) = summaries(probe.keys(), wing.rooms.arrays.to_numpy(probe.reduce()))
    return summary


def with_some(values: np.ndarray, bad: float) -> np.ndarray:
    values = values.copy()
    values[::7] = bad
    return values


NORMAL = DRAW.normal(2.0, 3.0, 900).astype(np.float32)
TENSORS = {
    "small": NORMAL[:50],
    "large": DRAW.normal(size=200_000).astype(np.float32),
    "matrix": NORMAL.reshape(30, 30),
    "one": np.array([3.5], np.float32),
    "constant": np.full(100, -2.0, np.float32),
    "zeros": np.zeros(100, np.float32),
    "relu": np.maximum(NORMAL - 2, 0),
    "nan": with_some(NORMAL, np.nan),
    "infinite": with_some(with_some(NORMAL[::-1], np.inf), -np.inf),
    "all nan": np.full(100, np.nan, np.float32),
    "all infinite": np.full(100, -np.inf, np.float32),
    "near overflow": (NORMAL * 3e37).astype(np.float32),
    "largest": np.array([3.4e38, -3.4e38] * 40, np.float32),
    "tiny": (NORMAL * 1e-30).astype(np.float32),
    "float64": NORMAL.astype(np.float64),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_summary_equals_numpy_on_the_same_sample(name: str, wing: Wing) -> None:
    values = TENSORS[name]
    sample = values.ravel()[(POSITIONS * values.size).astype(int)].astype(np.float64)
    finite = sample[np.isfinite(sample)]
    shown = summary_of(wing, values)
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    assert [shown.low, shown.high] == pytest.approx([low, high], rel=1e-6)
    size = max(abs(low), abs(high))
    assert shown.mean == pytest.approx(finite.mean() if finite.size else 0, abs=1e-5 * size)
    assert shown.std == pytest.approx(finite.std() if finite.size else 0, abs=1e-5 * size)
    assert shown.zeros == pytest.approx((sample == 0).mean())
    assert shown.counts.sum() == pytest.approx(1.0 if finite.size else 0.0, abs=1e-5)
    if low < high:
        counts = np.histogram(finite, BINS, (low, high))[0] / finite.size
        # A value that rounding moves across the edge of its bin may count for the next.
        assert np.abs(np.cumsum(counts) - np.cumsum(shown.counts)).max() < 4 / finite.size
    elif finite.size:
        assert shown.counts[0] == 1


@pytest.mark.parametrize("name", ["small", "matrix", "relu", "zeros"])
def test_the_sample_of_a_small_tensor_is_the_tensor(name: str, wing: Wing) -> None:
    values = TENSORS[name]
    shown = summary_of(wing, values)
    assert (shown.low, shown.high) == (values.min(), values.max())
    assert shown.mean == pytest.approx(values.mean(), abs=float(0.02 * values.std()))
    assert shown.std == pytest.approx(values.std(), rel=0.02)
    assert shown.zeros == pytest.approx((values == 0).mean(), abs=0.01)


def test_whole_numbers_are_passed_over(wing: Wing) -> None:
    probe = wing.rooms.probes.Probe()
    probe.add("layer", "activation", torch.arange(3) if wing.name == "pytorch" else tf.range(3))
    assert probe.keys() == []
    assert probe.reduce().shape == (0, 5 + BINS)


# -- models of several shapes, in each framework's own words --------------------------------------


class TorchTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(5, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.dense(x))


class KerasTwice(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(5)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.dense(self.dense(x))


def built(*layers: keras.Layer) -> keras.Sequential:
    return keras.Sequential([keras.Input((5,)), *layers])


Dense, Activation = keras.layers.Dense, keras.layers.Activation
MODELS: dict[str, dict[str, Callable[[], Any]]] = {
    "plain": {
        "pytorch": lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)),
        "keras": lambda: built(Dense(4, activation="relu"), Dense(3)),
    },
    "activation apart": {
        "pytorch": lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)),
        "keras": lambda: built(Dense(4), Activation("relu"), Dense(3)),
    },
    "nested": {
        "pytorch": lambda: nn.Sequential(
            nn.Sequential(nn.Linear(5, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 3))
        ),
        "keras": lambda: keras.Sequential(
            [keras.Input((5,)), built(Dense(4, activation="tanh")), keras.Sequential([Dense(3)])]
        ),
    },
    "called twice": {"pytorch": TorchTwice, "keras": KerasTwice},
    "no parameters": {"pytorch": nn.ReLU, "keras": lambda: built(Activation("relu"))},
}
LAYERS = {"plain": 2, "activation apart": 2, "nested": 2, "called twice": 1, "no parameters": 0}


def once(wing: Wing, model: Any, x: np.ndarray = X, fail: bool = False) -> tuple[Summary, ...]:
    """One forward and backward pass under watch; the loss is the mean square of the output."""
    with wing.rooms.probes.watch(model) as probe:
        if wing.name == "pytorch":
            loss = (model(torch.from_numpy(x).requires_grad_()) ** 2).mean()
            loss.backward()
        else:
            with tf.GradientTape() as tape:
                given = tf.constant(x)
                tape.watch(given)
                loss = tf.reduce_mean(model(given) ** 2)
            tape.gradient(loss, [given, *model.trainable_variables])
        if fail:
            raise ZeroDivisionError
    return summaries(probe.keys(), wing.rooms.arrays.to_numpy(probe.reduce()))


@pytest.mark.parametrize("name", MODELS)
def test_each_layer_with_weights_is_seen(name: str, wing: Wing) -> None:
    looks = once(wing, MODELS[name][wing.name]())
    assert [look.what for look in looks] == ["activation", "gradient"] * LAYERS[name]
    assert len({look.layer for look in looks}) == LAYERS[name]


@pytest.mark.parametrize("name", ["plain", "activation apart"])
def test_a_layer_is_seen_behind_its_activation(name: str, wing: Wing) -> None:
    first = once(wing, MODELS[name][wing.name]())[0]
    assert first.low >= 0
    assert first.zeros > 0


def test_of_two_calls_the_newest_is_seen(wing: Wing) -> None:
    model = MODELS["called twice"][wing.name]()
    activation, gradient = once(wing, model)
    rooms = wing.rooms
    output = rooms.arrays.to_numpy(
        rooms.layers.infer(model, rooms.arrays.to_tensor(X, *rooms.layers.home(model)))
    )
    assert activation.mean == pytest.approx(output.mean(), abs=float(0.02 * output.std()))
    assert activation.high == pytest.approx(output.max(), rel=1e-5)
    assert gradient.high == pytest.approx(2 * output.max() / output.size, rel=1e-5)


def test_a_recurrent_layer_is_seen() -> None:
    model = nn.LSTM(5, 4)
    with frameworks.load_wing("pytorch").probes.watch(model) as probe:
        model(torch.from_numpy(X))[0].sum().backward()
    assert len(probe.keys()) == 2


@pytest.mark.parametrize("name", ["plain", "nested", "called twice"])
@pytest.mark.parametrize("fail", [False, True])
def test_nothing_stays_on_the_model(name: str, fail: bool, wing: Wing) -> None:
    model = MODELS[name][wing.name]()
    once(wing, model)  # Keras builds some attributes at the first call
    before = attached(wing, model)
    if fail:
        with pytest.raises(ZeroDivisionError):
            once(wing, model, fail=True)
    else:
        once(wing, model)
    assert attached(wing, model) == before


def attached(wing: Wing, model: Any) -> Any:
    """Whatever could have been left on a model: hooks, and attributes of its own."""
    if wing.name == "pytorch":
        return [
            (list(module._forward_hooks), list(module._forward_pre_hooks), sorted(vars(module)))
            for module in model.modules()
        ]
    return [(layer.name, sorted(vars(layer))) for layer in model._flatten_layers()]


def test_attached_can_tell(wing: Wing) -> None:
    model = MODELS["plain"][wing.name]()
    once(wing, model)
    before = attached(wing, model)
    with wing.rooms.probes.watch(model):
        assert attached(wing, model) != before


# -- in training ----------------------------------------------------------------------------------

RUN = Run(network=Network("mlp", width=8, depth=2), data="moons", learning_rate=0.25)


def stepper(wing: Wing, network: Network = RUN.network) -> Any:
    rooms = wing.rooms
    rooms.seeds.seed(1)
    model = rooms.networks.build(network, (5,), 3, SINGLE)
    return rooms.steps.Stepper(model, X, np.arange(16) % 3, RUN)


def test_looking_changes_nothing(wing: Wing) -> None:
    blind, seeing = stepper(wing), stepper(wing)
    for step in range(8):
        rows = np.arange(step, step + 8)
        blind.train(rows)
        (seeing.look if step % 2 else seeing.train)(rows)
    assert np.array_equal(blind.drain(), seeing.drain())
    assert blind.evaluate(X, np.arange(16) % 3) == seeing.evaluate(X, np.arange(16) % 3)


@pytest.mark.parametrize("network", [Network("mlp", 8, 3, "tanh"), Network("cnn", 4, 2)])
def test_both_wings_see_the_same(network: Network) -> None:
    images = DRAW.uniform(size=(16, 8, 8, 2)).astype(np.float32)
    labels = np.arange(16) % 3
    wings = {name: frameworks.load_wing(name) for name in frameworks.WINGS}
    models = {
        name: rooms.networks.build(network, (8, 8, 2), 3, SINGLE) for name, rooms in wings.items()
    }
    wings["pytorch"].initializers.apply(models["pytorch"], Initializer("he_normal"))
    twins(models["pytorch"], models["keras"], images[:2]).copy_weights(source="pytorch")
    one, other = (
        rooms.steps.Stepper(models[name], images, labels, RUN).look(np.arange(16))
        for name, rooms in wings.items()
    )
    assert [look.what for look in one] == [look.what for look in other]
    for torch_look, keras_look in zip(one, other, strict=True):
        for number in ("low", "high", "mean", "std", "zeros"):
            close = pytest.approx(getattr(keras_look, number), abs=1e-4 * keras_look.std)
            assert getattr(torch_look, number) == close, (torch_look, number)
