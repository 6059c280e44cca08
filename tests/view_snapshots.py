"""Made-up snapshots for the tests of the views: a plausible run, without any framework."""

import numpy as np

from dlplay.records import BINS, Summary
from dlplay.runs.snapshot import Curve, Snapshot

LAYERS = ("conv1", "relu1", "conv2", "relu2", "dense1", "dense2")


def summary(
    layer: str, what: str, values: np.ndarray, low: float | None = None, high: float | None = None
) -> Summary:
    """Summarise values as a probe would."""
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    edges = (low, high) if high > low else (low - 0.5, low + 0.5)
    counts = np.histogram(values, bins=BINS, range=edges)[0] / len(values)
    return Summary(
        layer, what, counts.astype(np.float32), low, high,
        float(values.mean()), float(values.std()), float((values == 0).mean()),
    )  # fmt: skip


def summaries(rng: np.random.Generator, step: int, layers: tuple[str, ...] = LAYERS) -> list:
    """Activations and gradients of each layer, drifting with the step."""
    looks = []
    for depth, layer in enumerate(layers):
        wave = rng.normal(0.3 * np.sin(step / 40 + depth), 1 + 0.15 * depth, 2000)
        values = np.maximum(wave, 0) if "relu" in layer else wave
        looks.append(summary(layer, "activation", values))
        slope = rng.standard_t(4, 2000) * 10.0 ** (-depth / 2 - 1) / (1 + step / 200)
        looks.append(summary(layer, "gradient", slope))
    return looks


def curve(
    steps: int, seed: int = 0, layers: tuple[str, ...] = LAYERS, every: int = 45, speed: float = 1.0
) -> Curve:
    """One wing's curve after so many steps; the same seed continues the same run."""
    rng = np.random.default_rng(seed)
    at = np.arange(steps)
    noise = rng.normal(0, 1, (steps, 2)).T
    loss = (2.25 * np.exp(-speed * at / 130) + 0.06) * np.exp(0.25 * noise[0])
    accuracy = np.clip(1 - 0.9 * np.exp(-speed * at / 110) + 0.03 * noise[1], 0, 1)
    tests = np.arange(0, steps, every)
    return Curve(
        loss=loss,
        accuracy=np.round(accuracy * 32) / 32,
        test_steps=tests,
        test_loss=2.25 * np.exp(-speed * tests / 140) + 0.1,
        test_accuracy=0.975 - 0.87 * np.exp(-speed * tests / 100),
        seconds=0.004 * steps * (1 + seed / 3),
        summaries=tuple(summaries(rng, steps, layers)) if steps else (),
        summaries_step=steps - 1,
    )


def snapshot(step: int, state: str = "running", steps: int = 900, **changes: object) -> Snapshot:
    """A run of both wings at a step."""
    curves = {
        "pytorch": curve(step, 0),
        "keras": curve(step, 1, tuple(f"keras_{name}" for name in LAYERS), speed=0.95),
    }
    values: dict = {
        "state": state, "step": step, "steps": steps,
        "epoch": step // 45 + 1, "epochs": steps // 45,
        "learning_rate": 1e-3, "elapsed": step * 0.02, "remaining": (steps - step) * 0.02,
        "curves": curves,
    }  # fmt: skip
    return Snapshot(**{**values, **changes})
