"""How long four networks stay the same in PyTorch and in Keras while four optimizers train them.

    python -m benchmarks.parity [--quick] [--check] [--json]

Each row is a network, an optimizer and a type, with the largest relative difference of the outputs
and of the gradients before training, of the loss at some steps, and of the weights and the outputs
at the end; ``native`` with the forms of ``dlplay.keras.reconciled``, ``args`` by arguments alone.
Weights whose gradient is zero in theory are left out, by name. ``1 ulp`` is the control for
float32: PyTorch against itself, its weights moved by one unit in the last place. Where that is as
large as the twins' own difference, rounding explains all of it; the pair in float64 tells the rest.

Goal (``--check``): in float64 with native forms, every loss equal to 1e-12 at the last step and
every parameter to 1e-8.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import torch
from torch.nn import functional

from benchmarks.pairs import Pair, build
from dlplay.data import batches
from dlplay.keras import losses as keras_losses
from dlplay.keras import optimizers as keras_optimizers
from dlplay.keras import reconciled
from dlplay.pytorch import optimizers as torch_optimizers
from dlplay.settings import Optimizer

LOSS_GOAL, PARAMETER_GOAL = 1e-12, 1e-8
BATCH = 32
NETWORKS = ("mlp", "cnn", "lstm", "transformer")
OPTIMIZERS = {
    "sgd": (Optimizer("sgd", momentum=0.9), 0.01),
    "adam": (Optimizer("adam", epsilon=1e-8), 0.001),
    "adamw": (Optimizer("adamw", epsilon=1e-8, weight_decay=0.01), 0.001),
    "rmsprop": (Optimizer("rmsprop", beta_2=0.99, epsilon=1e-8), 0.001),
}
STEPS, QUICK_STEPS = (1, 10, 100, 500), (1, 10, 50)


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
    """Differences of the loss at each step, and of the parameters at the end."""
    optimizer, rate = OPTIMIZERS[name]
    pair = build(network, dtype)
    if native:
        reconciled.batch_norms(pair.keras)
    ours = train_torch(pair, optimizer, rate, steps)
    theirs = train_keras(pair, optimizer.replace(like="pytorch" if native else "own"), rate, steps)
    weights = [variable.numpy() for variable in pair.keras.trainable_variables]
    return {
        "losses": np.abs(ours - theirs) / np.abs(theirs),
        "parameters": _worst(pair, pair.from_torch(), weights),
        "outputs": _outputs(pair),
        "left_out": [f"{network} {name}" for name in pair.zero.values()],
        "last_loss": float(ours[-1]),
    }


def control(network: str, name: str, steps: int) -> np.ndarray:
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
    return np.abs(runs[0] - runs[1]) / np.abs(runs[1])


def measure(
    networks: tuple[str, ...], dtypes: tuple[str, ...], marks: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    """One row for each network, optimizer, type and way to reconcile."""
    for network in networks:
        for dtype in dtypes:
            start = at_start(network, dtype)
            for name in OPTIMIZERS:
                ways: dict[str, Any] = {
                    "native": along(network, name, dtype, True, marks[-1]),
                    "args": along(network, name, dtype, False, marks[-1]),
                }
                if dtype == "float32":
                    ways["1 ulp"] = {"losses": control(network, name, marks[-1])}
                for way, found in ways.items():
                    losses = {str(mark): float(found["losses"][mark - 1]) for mark in marks}
                    row = {"network": network, "optimizer": name, "dtype": dtype, "way": way}
                    yield {**row, **(start if way != "1 ulp" else {}), **found, "losses": losses}


def line(row: dict[str, Any]) -> str:
    """One line of the table."""
    start, end = ("forward", "gradients"), ("parameters", "outputs")
    numbers = [row.get(name) for name in start]
    numbers += [*row["losses"].values(), *(row.get(name) for name in end)]
    cells = [" " * 9 if number is None else f"{number:9.0e}" for number in numbers]
    head = f"{row['network']:12}{row['optimizer']:8}{row['dtype']:8}{row['way']:6}"
    return (head + "".join(cells)).rstrip()


def verdict(rows: list[dict[str, Any]]) -> tuple[bool, str]:
    """Whether the goal is met, and the figure that decides."""
    proofs = [row for row in rows if (row["dtype"], row["way"]) == ("float64", "native")]
    loss = max(list(row["losses"].values())[-1] for row in proofs)
    parameters = max(row["parameters"] for row in proofs)
    step = next(reversed(proofs[0]["losses"]))
    text = (
        f"float64, native, step {step}, worst of {len(proofs)}: loss {loss:.1e} (goal"
        f" {LOSS_GOAL:.0e}), parameters {parameters:.1e} (goal {PARAMETER_GOAL:.0e})"
    )
    return loss <= LOSS_GOAL and parameters <= PARAMETER_GOAL, text


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and say whether the goal is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="50 steps, float64 only")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    options = parser.parse_args(arguments)
    marks = QUICK_STEPS if options.quick else STEPS
    dtypes = ("float64",) if options.quick else ("float64", "float32")
    titles = ["forward", "grads", *(f"step {mark}" for mark in marks), "weights", "end"]
    if not options.json:
        print(" " * 34 + "".join(f"{title:>9}" for title in titles))
    rows = []
    for row in measure(tuple(options.networks), dtypes, marks):
        rows.append(row)
        if not options.json:
            print(line(row), flush=True)
    met, text = verdict(rows)
    if options.json:
        print(json.dumps({"rows": rows, "met": met, "figure": text}, indent=2))
    else:
        left_out = sorted({name for row in rows for name in row.get("left_out", ())})
        print(f"Left out, as their gradient is zero in theory: {', '.join(left_out)}\n{text}")
    return 1 if options.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
