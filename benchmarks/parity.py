"""How long four networks stay the same in PyTorch and in Keras while four optimizers train them.

The figure of each row is the relative difference of the loss at the last step. Beside it stand the
largest relative differences of the outputs and of the gradients before training, of the loss at
some steps, and of the weights and the outputs at the end. ``native`` is with the forms of
``dlplay.keras.reconciled``, ``args`` by arguments alone.

``1 ulp`` is the control for float32: PyTorch against itself, its weights moved by one unit in the
last place. Where that is as large as the twins' own difference, rounding explains all of it; the
pair in float64 tells the rest.

Goal: in float64 with native forms, every loss equal to 1e-12 at the last step, every weight to
1e-8. Weights whose gradient is zero in theory are left out, by name: they hold rounding noise,
which under Adam moves them by whole steps.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import tensorflow as tf
import torch
from torch.nn import functional

from benchmarks._report import Goal, Report, Row, main
from benchmarks.pairs import Pair, build
from dlplay.data import batches
from dlplay.keras import losses as keras_losses
from dlplay.keras import optimizers as keras_optimizers
from dlplay.keras import reconciled
from dlplay.pytorch import optimizers as torch_optimizers
from dlplay.settings import Optimizer

LOSS_GOAL, WEIGHT_GOAL = 1e-12, 1e-8
BATCH = 32
NETWORKS = ("mlp", "cnn", "lstm", "transformer")
OPTIMIZERS = {
    "sgd": (Optimizer("sgd", momentum=0.9), 0.01),
    "adam": (Optimizer("adam", epsilon=1e-8), 0.001),
    "adamw": (Optimizer("adamw", epsilon=1e-8, weight_decay=0.01), 0.001),
    "rmsprop": (Optimizer("rmsprop", beta_2=0.99, epsilon=1e-8), 0.001),
}
STEPS, QUICK_STEPS = (1, 10, 100, 500), (1, 10, 50)


@dataclass(frozen=True)
class Trained(Row):
    """A row with all its figures, for machines; ``note`` has them for people."""

    figures: dict[str, float] = field(default_factory=dict)
    proof: bool = False


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative to the largest size."""
    size = float(np.max(np.abs(b)))
    difference = float(np.max(np.abs(np.asarray(a, np.float64) - b)))
    return difference / size if size else difference


def rows_of(steps: int, count: int) -> Iterator[np.ndarray]:
    """The rows of each step's batch: one batch size throughout."""
    whole = [
        rows
        for epoch in range(1 + steps * BATCH // count)
        for rows in batches(count, BATCH, 0, epoch)
        if len(rows) == BATCH
    ]
    return iter(whole[:steps])


def train_torch(pair: Pair, optimizer: Optimizer, rate: float, steps: int) -> np.ndarray:
    """Train the PyTorch model; its loss at each step, before the update."""
    made = torch_optimizers.make(pair.torch, optimizer, rate)
    x, y = torch.from_numpy(pair.x_torch.copy()), torch.from_numpy(pair.y)
    losses = []
    for rows in rows_of(steps, len(pair.y)):
        made.zero_grad()
        loss = functional.cross_entropy(pair.torch(x[rows]), y[rows])
        loss.backward()
        made.step()
        losses.append(loss.item())
    return np.array(losses)


def train_keras(pair: Pair, optimizer: Optimizer, rate: float, steps: int) -> np.ndarray:
    """Train the Keras model; its loss at each step, before the update."""
    made = keras_optimizers.make(pair.keras, optimizer, rate)
    x, y = tf.constant(pair.x_keras), tf.constant(pair.y)

    @tf.function(input_signature=[tf.TensorSpec([BATCH], tf.int64)])
    def step(rows: tf.Tensor) -> tf.Tensor:
        loss, gradients = _keras_gradients(pair, tf.gather(x, rows), tf.gather(y, rows))
        made.apply(gradients, pair.keras.trainable_variables)
        return loss

    return np.array([float(step(tf.constant(rows))) for rows in rows_of(steps, len(pair.y))])


def _keras_gradients(pair: Pair, x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, list[Any]]:
    with tf.GradientTape() as tape:
        loss = keras_losses.cross_entropy(pair.keras(x, training=True), y)
    return loss, tape.gradient(loss, pair.keras.trainable_variables)


def at_start(network: str, dtype: str) -> dict[str, float]:
    """Differences of the outputs in inference mode, and of the gradients in training mode."""
    pair = build(network, dtype)
    x, y = torch.from_numpy(pair.x_torch[:BATCH].copy()), torch.from_numpy(pair.y[:BATCH])
    forward = _outputs(pair)
    functional.cross_entropy(pair.torch(x), y).backward()
    _, gradients = _keras_gradients(pair, tf.constant(pair.x_keras[:BATCH]), tf.constant(y.numpy()))
    theirs = [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
    return {"forward": forward, "gradients": _worst(pair, pair.from_torch(gradients=True), theirs)}


def _outputs(pair: Pair) -> float:
    """The difference of the outputs in inference mode: statistics of BatchNorm count here."""
    with torch.no_grad():
        ours = pair.torch.eval()(torch.from_numpy(pair.x_torch[:BATCH].copy())).numpy()
    pair.torch.train()
    return relative(ours, pair.keras(pair.x_keras[:BATCH], training=False).numpy())


def _worst(pair: Pair, ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    kept = [n for n in range(len(ours)) if n not in pair.zero]
    return max(relative(ours[n], theirs[n]) for n in kept)


def along(network: str, name: str, dtype: str, native: bool, steps: int) -> dict[str, Any]:
    """Differences of the loss at each step, and of weights and outputs at the end."""
    optimizer, rate = OPTIMIZERS[name]
    pair = build(network, dtype)
    if native:
        reconciled.batch_norms(pair.keras)
    ours = train_torch(pair, optimizer, rate, steps)
    theirs = train_keras(pair, optimizer.replace(like="pytorch" if native else "own"), rate, steps)
    weights = [variable.numpy() for variable in pair.keras.trainable_variables]
    return {
        "losses": np.abs(ours - theirs) / np.abs(theirs),
        "weights": _worst(pair, pair.from_torch(), weights),
        "end": _outputs(pair),
    }


def control(network: str, name: str, steps: int) -> dict[str, Any]:
    """PyTorch against itself in float32, with all weights moved by one unit in the last place."""
    optimizer, rate = OPTIMIZERS[name]
    runs = []
    for moved in (False, True):
        pair = build(network, "float32")
        if moved:
            with torch.no_grad():
                for parameter in pair.torch.parameters():
                    parameter.copy_(torch.nextafter(parameter, parameter + 1))
        runs.append(train_torch(pair, optimizer, rate, steps))
    return {"losses": np.abs(runs[0] - runs[1]) / np.abs(runs[1])}


def compare(dtypes: tuple[str, ...], marks: tuple[int, ...]) -> Iterator[Trained]:
    """One row for each network, type, optimizer and way to reconcile."""
    for network, dtype in product(NETWORKS, dtypes):
        start = at_start(network, dtype)
        for name in OPTIMIZERS:
            ways: dict[str, Any] = {
                "native": {**start, **along(network, name, dtype, True, marks[-1])},
                "args": {**start, **along(network, name, dtype, False, marks[-1])},
            }
            if dtype == "float32":
                ways["1 ulp"] = control(network, name, marks[-1])
            for way, found in ways.items():
                proof = (dtype, way) == ("float64", "native")
                yield _row(f"{network} {name} {dtype} {way}", found, marks, proof)


def _row(name: str, found: dict[str, Any], marks: tuple[int, ...], proof: bool) -> Trained:
    losses = found.pop("losses")
    steps = {f"step {mark}": float(losses[mark - 1]) for mark in marks}
    ends = {key: found[key] for key in ("weights", "end") if key in found}
    starts = {key: found[key] for key in ("forward", "gradients") if key in found}
    figures = {**starts, **steps, **ends}
    note = ", ".join(f"{key} {figure:.0e}" for key, figure in figures.items())
    return Trained(name, float(losses[-1]), "", note, figures, proof)


def measure(quick: bool) -> Report:
    """Train all pairs, and hold the float64 ones with native forms to the goals."""
    dtypes = ("float64",) if quick else ("float64", "float32")
    marks = QUICK_STEPS if quick else STEPS
    rows = list(compare(dtypes, marks))
    proofs = [row for row in rows if row.proof]
    worst = f"float64, native, worst of {len(proofs)}"
    losses = max(row.value for row in proofs)
    weights = max(row.figures["weights"] for row in proofs)
    goals = [
        Goal(f"loss at step {marks[-1]}, {worst}", losses, LOSS_GOAL),
        Goal(f"weights after it, {worst}", weights, WEIGHT_GOAL),
    ]
    left_out = [f"{n} {name}" for n in NETWORKS for name in build(n, "float32").zero.values()]
    note = f"Left out, as their gradient is zero in theory: {', '.join(left_out)}."
    return Report("The same network in PyTorch and in Keras, trained", rows, goals, [note])


if __name__ == "__main__":
    sys.exit(main("parity", __doc__, measure))
