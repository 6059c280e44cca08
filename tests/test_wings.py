"""One suite for both wings; where a number is wanted, NumPy or the other wing is the oracle."""

import math
import os
from typing import Any

import keras
import numpy as np
import pytest
import torch
from conftest import Wing

from dlplay import frameworks
from dlplay.data import Dataset
from dlplay.errors import SettingError
from dlplay.records import Layer
from dlplay.runs import Training
from dlplay.settings import Initializer, Network, Optimizer, Placement, Precision, Run

DRAW = np.random.default_rng(11)
IMAGES = DRAW.uniform(size=(12, 8, 8, 2)).astype(np.float32)
POINTS = DRAW.normal(size=(12, 5)).astype(np.float32)
LABELS = np.arange(12) % 3
NETWORKS = {
    "mlp": (Network("mlp", 7, 2), POINTS, 5 * 7 + 7 + 7 * 7 + 7 + 7 * 3 + 3),
    "one layer": (Network("mlp", 1, 1), POINTS, 5 + 1 + 3 + 3),
    "mlp on images": (Network("mlp", 4, 1), IMAGES, 128 * 4 + 4 + 4 * 3 + 3),
    "cnn": (
        Network("cnn", 4, 2),
        IMAGES,
        (9 * 2 * 4 + 4) + (9 * 4 * 8 + 8) + (2 * 2 * 8 * 16 + 16) + (16 * 3 + 3),
    ),
    "deepest cnn": (
        Network("cnn", 1, 3),
        IMAGES,
        (9 * 2 + 1) + (9 * 2 + 2) + (9 * 2 * 4 + 4) + (4 * 4 + 4) + (4 * 3 + 3),
    ),
}


def build(wing: Wing, network: Network, x: np.ndarray, precision: str = "float32") -> Any:
    return wing.rooms.networks.build(network, x.shape[1:], 3, Precision(precision))


def given(wing: Wing, model: Any, x: np.ndarray) -> Any:
    return wing.rooms.arrays.to_tensor(x, *wing.rooms.layers.home(model))


def layers(wing: Wing, model: Any, x: np.ndarray) -> list[Layer]:
    """The layers that have weights, in the form that both wings share."""
    return [layer for layer in wing.rooms.layers.read(model, given(wing, model, x)) if layer.arrays]


def arrays(wing: Wing, model: Any, x: np.ndarray) -> list[np.ndarray]:
    return [array for layer in layers(wing, model, x) for array in layer.arrays.values()]


def logits(wing: Wing, model: Any, x: np.ndarray) -> np.ndarray:
    return wing.rooms.arrays.to_numpy(wing.rooms.layers.infer(model, given(wing, model, x)))


# -- networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_their_size_and_give_logits(name: str, wing: Wing) -> None:
    network, x, size = NETWORKS[name]
    model = build(wing, network, x)
    assert sum(array.size for array in arrays(wing, model, x)) == size
    shown = logits(wing, model, x)
    assert shown.shape == (12, 3)
    assert np.abs(shown.sum(1) - 1).max() > 1e-3  # logits, not probabilities


def test_the_data_must_suit_a_cnn(wing: Wing) -> None:
    with pytest.raises(SettingError, match=r"Network\('mlp'\)"):
        build(wing, Network("cnn"), POINTS)
    with pytest.raises(SettingError, match="at most 3"):
        build(wing, Network("cnn", depth=4), IMAGES)


# -- initializers ---------------------------------------------------------------------------------

#: Standard deviation by fan-in and fan-out.
FORMULAS = {
    "xavier_uniform": lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out)),
    "xavier_normal": lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out)),
    "he_uniform": lambda fan_in, fan_out: math.sqrt(2 / fan_in),
    "he_normal": lambda fan_in, fan_out: math.sqrt(2 / fan_in),
    "normal": lambda fan_in, fan_out: 0.05,
}
WIDE = DRAW.normal(size=(2, 300)).astype(np.float32)
DENSE, CONVOLUTION = (Network("mlp", 200, 2), WIDE), (Network("cnn", 24, 2), IMAGES)


def drawn(wing: Wing, sort: tuple[Network, np.ndarray], initializer: Initializer) -> list[Layer]:
    wing.rooms.seeds.seed(5)
    model = build(wing, *sort)
    wing.rooms.initializers.apply(model, initializer)
    return layers(wing, model, sort[1])


@pytest.mark.parametrize("sort", [DENSE, CONVOLUTION], ids=["dense", "convolution"])
@pytest.mark.parametrize("gain", [1.0, 0.5])
@pytest.mark.parametrize("name", FORMULAS)
def test_kernels_follow_their_formula(name: str, gain: float, sort: Any, wing: Wing) -> None:
    for layer in drawn(wing, sort, Initializer(name, gain))[:2]:
        kernel = layer.arrays["kernel"]
        field = math.prod(kernel.shape[:-2])
        fan_in, fan_out = field * kernel.shape[-2], field * kernel.shape[-1]
        std = gain * FORMULAS[name](fan_in, fan_out)
        # Five standard errors: of a normal draw's mean, and of its standard deviation.
        assert abs(kernel.mean()) < 5 * std / math.sqrt(kernel.size)
        assert kernel.std() == pytest.approx(std, rel=5 / math.sqrt(2 * kernel.size))
        if "uniform" in name:
            assert np.abs(kernel).max() == pytest.approx(math.sqrt(3) * std, rel=0.05)
        assert not layer.arrays["bias"].any()


@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_orthogonal_kernels_are_orthogonal(gain: float, wing: Wing) -> None:
    kernel = drawn(wing, DENSE, Initializer("orthogonal", gain))[0].arrays["kernel"]
    assert kernel.T @ kernel == pytest.approx(gain**2 * np.eye(200), abs=1e-4)


@pytest.mark.parametrize("sort", [DENSE, CONVOLUTION], ids=["dense", "convolution"])
def test_zeros_are_zeros(sort: Any, wing: Wing) -> None:
    for layer in drawn(wing, sort, Initializer("zeros")):
        assert not any(array.any() for array in layer.arrays.values())


def test_default_leaves_what_the_framework_drew(wing: Wing) -> None:
    wing.rooms.seeds.seed(5)
    untouched = arrays(wing, build(wing, *DENSE), WIDE)
    named = drawn(wing, DENSE, Initializer("default"))
    after = [array for layer in named for array in layer.arrays.values()]
    assert all(np.array_equal(*pair) for pair in zip(untouched, after, strict=True))
    kernel, bias = after[0], after[1]
    limit = {"pytorch": 1 / math.sqrt(300), "keras": math.sqrt(6 / 500)}[wing.name]
    assert np.abs(kernel).max() == pytest.approx(limit, rel=0.01)
    assert bias.any() == (wing.name == "pytorch")


@pytest.mark.parametrize("name", ["default", "he_normal", "orthogonal"])
def test_a_seed_repeats_the_draw(name: str, wing: Wing) -> None:
    def draw(seed: int) -> list[np.ndarray]:
        wing.rooms.seeds.seed(seed)
        model = build(wing, *NETWORKS["cnn"][:2])
        wing.rooms.initializers.apply(model, Initializer(name))
        return arrays(wing, model, IMAGES)

    one, same, other = draw(3), draw(3), draw(4)
    assert all(np.array_equal(*pair) for pair in zip(one, same, strict=True))
    assert not np.array_equal(one[0], other[0])


# -- arrays and precision -------------------------------------------------------------------------

ARRAYS = {
    "images": IMAGES,
    "volumes": DRAW.normal(size=(2, 3, 4, 5, 6)).astype(np.float32),
    "points": POINTS,
    "series": DRAW.normal(size=(2, 3, 4)).astype(np.float32),
    "vector": POINTS[0],
    "whole numbers": LABELS,
    "bytes": LABELS.astype(np.uint8),
    "view": IMAGES[::-2, :, ::2],
    "column order": np.asfortranarray(POINTS),
    "float64": POINTS.astype(np.float64),
    "empty": POINTS[:0],
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back_as_they_went(name: str, precision: str, wing: Wing) -> None:
    room, array = wing.rooms.arrays, ARRAYS[name]
    device = wing.rooms.devices.resolve(Placement("cpu"))
    back = room.to_numpy(room.to_tensor(array, Precision(precision), device))
    assert back.dtype == (precision if array.dtype.kind == "f" else "int64")
    assert np.array_equal(back, array.astype(back.dtype))


def test_images_take_the_framework_s_own_layout(wing: Wing) -> None:
    device = wing.rooms.devices.resolve(Placement("cpu"))
    tensor = wing.rooms.arrays.to_tensor(IMAGES, Precision(), device)
    assert tuple(tensor.shape) == {"pytorch": (12, 2, 8, 8), "keras": (12, 8, 8, 2)}[wing.name]


def outside(wing: Wing) -> Any:
    """What a precision could have left changed for everybody else."""
    if wing.name == "keras":
        return keras.config.dtype_policy().name, keras.config.floatx()
    return torch.get_default_dtype(), torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_a_precision_holds_inside_and_only_there(precision: str, wing: Wing) -> None:
    before = outside(wing)
    kept = "float64" if precision == "float64" else "float32"
    model = build(wing, *NETWORKS["cnn"][:2], precision)
    assert {array.dtype.name for array in arrays(wing, model, IMAGES)} == {kept}
    run = Run(precision=Precision(precision), optimizer=Optimizer(momentum=0))
    stepper = wing.rooms.steps.Stepper(model, IMAGES, LABELS, run)
    stepper.look(np.arange(12))
    stepper.evaluate(IMAGES, LABELS)
    assert {array.dtype.name for array in arrays(wing, model, IMAGES)} == {kept}
    assert outside(wing) == before
    device = wing.rooms.devices.resolve(Placement("cpu"))
    with pytest.raises(ZeroDivisionError), wing.rooms.precision.scope(run.precision, device):
        raise ZeroDivisionError
    assert outside(wing) == before


def test_bfloat16_computes_with_fewer_digits(wing: Wing) -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        wing.rooms.seeds.seed(2)
        model = build(wing, *NETWORKS["mlp"][:2], precision)
        run = Run(precision=Precision(precision))
        stepper = wing.rooms.steps.Stepper(model, POINTS, LABELS, run)
        stepper.train(np.arange(12))
        losses[precision] = stepper.drain()[0, 0]
    assert 1e-7 < abs(losses["float32"] / losses["bfloat16"] - 1) < 0.05


# -- steps ----------------------------------------------------------------------------------------

#: float64 with numbers that float32, in which Keras keeps them, holds exactly.
EXACT = Run(
    network=Network("mlp", 6, 1),
    precision=Precision("float64"),
    optimizer=Optimizer(momentum=7 / 8),
    learning_rate=1 / 16,
    batch_size=8,
    epochs=1,
)
OWN = {
    "points": Dataset("points", POINTS, LABELS, POINTS[:5], LABELS[:5], ("a", "b", "c")),
    "images": Dataset("images", IMAGES, LABELS, IMAGES[:5], LABELS[:5], ("a", "b", "c")),
}


@pytest.mark.parametrize("activation", Network.rule("activation").options)
@pytest.mark.parametrize(("kind", "data"), [("mlp", "points"), ("cnn", "images")])
def test_steps_and_scores_are_equal_in_both_wings(kind: str, data: str, activation: str) -> None:
    network = Network(kind, 6, 1, activation)
    training = Training(EXACT.replace(network=network), data=OWN[data]).start()
    # TensorFlow's GELU takes the square root of two in float32, whatever its input.
    close = 1e-8 if activation == "gelu" else 1e-12
    curves = training.wait(60).curves  # two steps, the second on a smaller batch, and a test
    assert curves["pytorch"].loss == pytest.approx(curves["keras"].loss, rel=close)
    assert np.array_equal(curves["pytorch"].accuracy, curves["keras"].accuracy)
    assert curves["pytorch"].test_loss == pytest.approx(curves["keras"].test_loss, rel=close)
    assert np.array_equal(curves["pytorch"].test_accuracy, curves["keras"].test_accuracy)
    weights = [
        arrays(Wing(name, frameworks.load_wing(name)), model, OWN[data].x_train)
        for name, model in training.models.items()
    ]
    for one, other in zip(*weights, strict=True):
        assert one == pytest.approx(other, abs=close)


def stepper(wing: Wing, learning_rate: float = 0.25) -> tuple[Any, Any]:
    """A small model and its stepper, plain gradient descent."""
    wing.rooms.seeds.seed(2)
    model = build(wing, *NETWORKS["mlp"][:2])
    run = Run(optimizer=Optimizer(momentum=0), learning_rate=learning_rate)
    return model, wing.rooms.steps.Stepper(model, POINTS, LABELS, run)


def test_a_step_is_the_gradient_times_the_learning_rate(wing: Wing) -> None:
    moves = []
    for rate in (0.25, 0.5):
        model, steps = stepper(wing, rate)
        before = arrays(wing, model, POINTS)
        steps.train(np.arange(12))
        moves.append([b - a for a, b in zip(before, arrays(wing, model, POINTS), strict=True)])
    for one, twice in zip(*moves, strict=True):
        assert one.any()
        assert twice == pytest.approx(2 * one, abs=1e-7)


def test_a_new_learning_rate_acts_on_the_next_step(wing: Wing) -> None:
    model, steps = stepper(wing, 1e-30)
    kernel = arrays(wing, model, POINTS)[0]
    steps.train(np.arange(12))
    assert np.array_equal(kernel, arrays(wing, model, POINTS)[0])
    steps.set_learning_rate(0.25)
    steps.train(np.arange(12))
    assert not np.array_equal(kernel, arrays(wing, model, POINTS)[0])


def test_scores_are_those_of_numpy(wing: Wing) -> None:
    model, steps = stepper(wing)
    rows = np.array([1, 3, 3, 8])
    wanted = scores(logits(wing, model, POINTS[rows]), LABELS[rows])
    steps.train(rows)  # before its update
    assert steps.drain()[0] == pytest.approx(wanted, rel=1e-5)
    wanted = scores(logits(wing, model, POINTS), LABELS)
    assert steps.evaluate(POINTS, LABELS) == pytest.approx(wanted, rel=1e-5)


def scores(given: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cross-entropy and accuracy, in float64."""
    given = given.astype(np.float64)
    log = given - np.log(np.exp(given).sum(1, keepdims=True))
    right = (given.argmax(1) == labels).mean()
    return float(-log[np.arange(len(labels)), labels].mean()), float(right)


def test_evaluation_is_whole_where_the_set_is_large(wing: Wing) -> None:
    model, steps = stepper(wing)
    many = DRAW.normal(size=(2300, 5)).astype(np.float32)
    labels = np.arange(2300) % 3
    wanted = scores(logits(wing, model, many), labels)
    assert steps.evaluate(many, labels) == pytest.approx(wanted, rel=1e-5)


def test_drain_gives_each_step_once(wing: Wing) -> None:
    _, steps = stepper(wing)
    assert steps.drain().shape == (0, 2)
    for rows in (np.arange(4), np.arange(7)):
        steps.train(rows)
    first = steps.drain()
    assert (first.shape, first.dtype) == ((2, 2), np.float64)
    assert steps.drain().shape == (0, 2)


# -- devices --------------------------------------------------------------------------------------


def test_a_gpu_that_is_not_there_gets_a_sentence(
    wing: Wing, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = wing.rooms.devices
    cpu = devices.available()[0]
    monkeypatch.setattr(devices, "available", lambda: [cpu])
    assert devices.resolve(Placement("auto")) == devices.resolve(Placement("cpu"))
    with pytest.raises(SettingError, match="sees no GPU here"):
        devices.resolve(Placement("gpu"))


def test_a_gpu_that_is_there_is_taken(wing: Wing, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = wing.rooms.devices
    seen = {"pytorch": ["cpu", "cuda:0"], "keras": ["CPU:0", "GPU:0"]}[wing.name]
    monkeypatch.setattr(devices, "available", lambda: seen)
    assert devices.resolve(Placement("auto")) == devices.resolve(Placement("gpu")) == seen[1]
    assert devices.resolve(Placement("cpu")).lower() == seen[0].lower()


def test_one_core_is_left_free(wing: Wing) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        wing.rooms.devices.limit_threads()
        wanted = max(1, (os.cpu_count() or 2) - 1) if wing.name == "pytorch" else 3
        assert torch.get_num_threads() == wanted
    finally:
        torch.set_num_threads(threads)
