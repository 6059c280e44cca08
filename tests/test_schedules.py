"""Every schedule gives the same learning rates in both wings, and what its settings say."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny
import torch
from keras.optimizers import schedules as keras_own
from torch.optim import lr_scheduler

from dlplay.frameworks import load_wing
from dlplay.keras import schedules as keras_schedules
from dlplay.pytorch import schedules as torch_schedules
from dlplay.settings import Optimizer, Schedule

NAMES = Schedule.rule("name").options
RATE = 0.3

#: Of the largest rate. PyTorch multiplies its way from step to step: 4e-14 after 10,000 steps
#: (exponential), all others at most 2e-14. Keras computes each step afresh: 6e-16.
EXACT = 1e-12


def expected(schedule: Schedule, steps: int) -> np.ndarray:
    return RATE * np.array([schedule.factor(step, steps) for step in range(steps)])


def rates(wing: str, schedule: Schedule, steps: int) -> np.ndarray:
    return load_wing(wing).schedules.rates(schedule, RATE, steps)


@pytest.mark.parametrize("wing", tiny.WINGS)
@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_steps(wing: str, name: str) -> None:
    schedule = Schedule(name)
    apart = np.abs(rates(wing, schedule, 10_000) - expected(schedule, 10_000))
    assert np.max(apart) <= EXACT * RATE


OTHERS = [
    {"warmup": 0.2},
    {"final": 0.5, "drop": 0.1, "power": 0.5, "cycles": 2, "growth": 3, "start": 0.5, "peak": 0.6},
    {"first_drop": 0.9, "second_drop": 0.2, "cycles": 7, "growth": 2, "power": 1.0},
]


@pytest.mark.parametrize("steps", [1, 2, 3, 97])
@pytest.mark.parametrize("values", OTHERS)
@pytest.mark.parametrize("name", NAMES)
def test_other_values_and_short_runs(name: str, values: dict, steps: int) -> None:
    schedule = Schedule(name, **values)
    for wing in tiny.WINGS:
        apart = np.abs(rates(wing, schedule, steps) - expected(schedule, steps))
        assert np.max(apart) <= EXACT * RATE


@pytest.mark.parametrize("name", NAMES)
def test_warmup_rises_linearly_to_one(name: str) -> None:
    factors = expected(Schedule(name, warmup=0.5), 20)[:10] / RATE
    assert np.allclose(factors, np.arange(1, 11) / 10, rtol=0, atol=1e-15)


def test_names_from_before_mean_the_same() -> None:
    """The formulas of the first five schedules, as they were written first."""
    shares = np.arange(101) / 100
    old = {
        "constant": np.ones(101),
        "step": 0.5 ** np.minimum((3 * np.arange(101)) // 100, 2),
        "exponential": 0.01**shares,
        "cosine": 0.01 + 0.99 * (1 + np.cos(np.pi * shares)) / 2,
        "linear": 1 - 0.99 * shares,
    }
    for name, factors in old.items():
        assert np.allclose(expected(Schedule(name), 101), RATE * factors, rtol=1e-14, atol=0)


@pytest.mark.parametrize("wing", tiny.WINGS)
@pytest.mark.parametrize("name", ["cosine", "one-cycle", "inverse-sqrt", "multi-step"])
def test_it_drives_an_optimizer(wing: str, name: str) -> None:
    """A weight with gradient 1 under plain SGD moves by the sum of the rates."""
    schedule, values = Schedule(name, warmup=0.1), Optimizer("sgd", momentum=0.0, like="pytorch")
    moved = {"pytorch": _move_torch, "keras": _move_keras}[wing](schedule, values, 30)
    assert moved == pytest.approx(-np.sum(expected(schedule, 30)), rel=1e-12)


def _move_torch(schedule: Schedule, values: Optimizer, steps: int) -> float:
    model = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.zeros_(model.weight)
    optimizer = load_wing("pytorch").optimizers.make(model, values, 1.0)
    scheduler = torch_schedules.attach(optimizer, schedule, RATE, steps)
    for step in range(steps):
        model.weight.grad = torch.ones_like(model.weight)
        optimizer.step()
        if step < steps - 1:
            scheduler.step()
    return model.weight.item()


def _move_keras(schedule: Schedule, values: Optimizer, steps: int) -> float:
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", dtype="float64")
    model = keras.Sequential([keras.Input((1,), dtype="float64"), dense])
    optimizer = load_wing("keras").optimizers.make(model, values, 1.0)
    keras_schedules.attach(optimizer, schedule, RATE, steps)
    for _ in range(steps):
        optimizer.apply([tf.ones((1, 1), tf.float64)])
    return float(dense.kernel.numpy()[0, 0])


@pytest.mark.parametrize("name", NAMES)
def test_keras_schedules_are_saved_as_json(name: str) -> None:
    made = keras_schedules.attach(
        keras.optimizers.SGD(0.1), Schedule(name, warmup=0.1, growth=2), RATE, 50
    )
    again = keras_own.deserialize(json.loads(json.dumps(keras_own.serialize(made))))
    for step in (0, 4, 5, 20, 49):  # a file keeps plain numbers: Keras then computes in float32
        assert float(again(step)) == pytest.approx(float(made(step)), rel=1e-6)


# What the two frameworks' own classes do when they are given the same numbers (PARITY).


def of_torch(make: object, steps: int = 60) -> np.ndarray:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(found)


def of_keras(schedule: keras_own.LearningRateSchedule, steps: int = 60) -> np.ndarray:
    return np.array([float(schedule(step)) for step in range(steps)])


T, K, WIDE = lr_scheduler, keras_own, np.float64(0.1)

#: PyTorch's scheduler; Keras's with the same numbers; Keras's reconciled; how far the first two are
#: apart, of 0.1.
PAIRS = {
    "staircase": (
        lambda o: T.StepLR(o, 10, 0.5),
        K.ExponentialDecay(WIDE, 10, 0.5),
        K.ExponentialDecay(WIDE, 10, 0.5, staircase=True),
        0.46,
    ),
    "boundaries change one step later": (
        lambda o: T.MultiStepLR(o, [30, 50], 0.1),
        K.PiecewiseConstantDecay([30, 50], [WIDE, WIDE / 10, WIDE / 100]),
        K.PiecewiseConstantDecay([29, 49], [WIDE, WIDE / 10, WIDE / 100]),
        0.9,
    ),
    "alpha is a fraction": (
        lambda o: T.CosineAnnealingLR(o, 59, eta_min=0.001),
        K.CosineDecay(WIDE, 59, alpha=0.001),
        K.CosineDecay(WIDE, 59, alpha=0.01),
        9e-3,
    ),
    "the end of a polynomial": (
        lambda o: T.PolynomialLR(o, 59, power=2.0),
        K.PolynomialDecay(WIDE, 59, power=2.0),
        K.PolynomialDecay(WIDE, 59, end_learning_rate=0.0, power=2.0),
        1e-3,
    ),
    "inverse time": (
        lambda o: T.LambdaLR(o, lambda step: 1 / (1 + 0.1 * step)),
        K.InverseTimeDecay(0.1, 1, 0.1),
        K.InverseTimeDecay(WIDE, 1, np.float64(0.1)),
        5e-8,
    ),
    "warm-up is not part of decay_steps": (
        lambda o: T.SequentialLR(
            o, [T.LinearLR(o, 1e-12, 1.0, 10), T.CosineAnnealingLR(o, 50)], [10]
        ),
        K.CosineDecay(np.float64(0.0), 60, warmup_target=WIDE, warmup_steps=10),
        K.CosineDecay(np.float64(0.0), 50, warmup_target=WIDE, warmup_steps=10),
        9e-2,
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_own_schedules_part_and_are_reconciled(case: str) -> None:
    make, same, reconciled, size = PAIRS[case]
    ours = of_torch(make)
    apart = np.max(np.abs(ours - of_keras(same))) / 0.1
    assert size / 3 <= apart <= size * 3
    # 1e-12: LinearLR cannot start from 0, so that row starts from 1e-12; others at most 1e-14.
    assert np.max(np.abs(ours - of_keras(reconciled))) <= EXACT


def test_a_plain_number_makes_a_float32_schedule() -> None:
    plain, wide = K.CosineDecay(0.1, 50), K.CosineDecay(np.float64(0.1), 50)
    assert (plain(7).dtype, wide(7).dtype) == (tf.float32, tf.float64)
    exact = 0.1 * (1 + math.cos(math.pi * 7 / 50)) / 2
    assert abs(float(wide(7)) - exact) < 1e-16 < 1e-10 < abs(float(plain(7)) - exact) < 1e-7


def test_pytorchs_cosine_rises_again_after_its_end() -> None:
    ours = of_torch(lambda o: T.CosineAnnealingLR(o, 30))
    theirs = of_keras(K.CosineDecay(WIDE, 30))
    assert np.max(np.abs(ours[:31] - theirs[:31])) <= EXACT
    assert ours[59] > 0.09
    assert theirs[59] == 0.0


def test_own_restarts_of_keras_can_miss_one() -> None:
    """Compiled, the division by the length of a cycle is a product with its rounded inverse."""
    schedule = K.CosineDecayRestarts(np.float64(1.0), 3334, t_mul=1.0)
    compiled = tf.function(schedule)
    assert float(schedule(tf.constant(6668))) == 1.0
    found = [float(compiled(tf.constant(step))) for step in range(3334, 40008, 3334)]
    assert min(found) < 1e-6


def test_a_cycle_moves_momentum_too_unless_told() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    stock = torch.optim.SGD([weight], 0.1, momentum=0.9)
    T.OneCycleLR(stock, 0.1, total_steps=10)
    assert stock.param_groups[0]["momentum"] == 0.95
    ours = torch.optim.SGD([weight], 0.1, momentum=0.9)
    torch_schedules.attach(ours, Schedule("one-cycle"), 0.1, 10)
    assert ours.param_groups[0]["momentum"] == 0.9


def test_patience_is_counted_differently() -> None:
    """At a constant loss PyTorch waits for ``patience + 1`` epochs, Keras for ``patience``."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)
    scheduler = T.ReduceLROnPlateau(optimizer, patience=3)
    ours = []
    for _ in range(8):
        scheduler.step(1.0)
        ours.append(optimizer.param_groups[0]["lr"] < 1)
    model = tiny.keras_model()
    model.compile(keras.optimizers.SGD(1.0), "mse")
    callback = keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=3)
    callback.set_model(model)
    callback.on_train_begin()
    theirs = []
    for epoch in range(8):
        callback.on_epoch_end(epoch, {"loss": 1.0})
        theirs.append(float(model.optimizer.learning_rate) < 1)
    assert (ours.index(True), theirs.index(True)) == (4, 3)


def test_a_rate_under_a_schedule_cannot_be_set_in_keras() -> None:
    optimizer = keras.optimizers.SGD(K.ExponentialDecay(0.1, 10, 0.5))
    with pytest.raises(TypeError, match="not settable"):
        optimizer.learning_rate = 0.2
