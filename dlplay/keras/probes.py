"""Looks inside a Keras model while it makes a training step, in the compiled graph."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import tensorflow as tf

from dlplay.keras.structure import calls_through, leaves
from dlplay.records import BINS, POSITIONS

_TINY = tf.float32.as_numpy_dtype(1.2e-38)  # about the smallest float32 of full precision


class Probe:
    """Bounded samples of the activations and gradients of a model's layers, newest call each."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, str], tf.Tensor] = {}

    def add(self, layer: str, what: str, tensor: tf.Tensor) -> None:
        """Sample a tensor where it lives; integer tensors are passed over.

        A second activation of a layer replaces the first. A second gradient does not: the
        backward pass meets the newest call first.
        """
        known = what == "gradient" and (layer, what) in self._samples
        if tensor.dtype.is_floating and not known:
            flat = tf.reshape(tensor, [-1])
            size = tf.cast(tf.size(flat), tf.float64)
            where = tf.cast(tf.constant(POSITIONS) * size, tf.int32)
            self._samples[layer, what] = tf.cast(tf.gather(flat, where), tf.float32)

    def keys(self) -> list[tuple[str, str]]:
        """(layer, ``"activation"`` or ``"gradient"``) of each row of ``reduce``, in layer order."""
        layers = dict.fromkeys(layer for layer, what in self._samples if what == "activation")
        wanted = [(layer, what) for layer in layers for what in ("activation", "gradient")]
        return [key for key in wanted if key in self._samples]

    def reduce(self) -> tf.Tensor:
        """All samples as one small tensor (keys, 5 + BINS), made where the samples live.

        The columns are low, high, mean, standard deviation and share of zeros, then the share of
        the finite sample in each bin.
        """
        if not self._samples:
            return tf.zeros([0, 5 + BINS])
        samples = tf.stack([self._samples[key] for key in self.keys()])
        finite = tf.math.is_finite(samples)
        weight = tf.cast(finite, samples.dtype)
        count = tf.maximum(tf.reduce_sum(weight, 1), 1.0)
        low = _zero_if_infinite(tf.reduce_min(tf.where(finite, samples, samples.dtype.max), 1))
        high = _zero_if_infinite(tf.reduce_max(tf.where(finite, samples, samples.dtype.min), 1))
        # In units of the largest value, so that no sum, square or difference overflows.
        unit = tf.maximum(tf.maximum(tf.abs(low), tf.abs(high)), _TINY)
        parts = tf.where(finite, samples, 0.0) / unit[:, None]
        mean = tf.reduce_sum(parts, 1) / count
        spread = tf.where(finite, parts - mean[:, None], 0.0)
        std = tf.sqrt(tf.reduce_sum(tf.square(spread), 1) / count)
        zeros = tf.reduce_mean(tf.cast(samples == 0, samples.dtype), 1)
        scale = BINS / tf.maximum(high / unit - low / unit, 1e-30)  # of a constant
        bins = tf.clip_by_value((parts - (low / unit)[:, None]) * scale[:, None], 0.0, BINS - 1.0)
        rows = tf.range(len(self.keys()))[:, None] * BINS
        counts = tf.math.unsorted_segment_sum(
            weight, tf.cast(bins, tf.int32) + rows, len(self.keys()) * BINS
        )
        moments = tf.stack([low, high, mean * unit, std * unit, zeros], axis=1)
        shares = tf.reshape(counts, [-1, BINS]) / count[:, None]
        return tf.concat([moments, shares], axis=1)


def _zero_if_infinite(edge: tf.Tensor) -> tf.Tensor:
    """An edge of a sample in which nothing was finite."""
    return tf.where(tf.abs(edge) == edge.dtype.max, 0.0, edge)


@contextmanager
def watch(model: keras.Model) -> Iterator[Probe]:
    """Sample every layer that has weights during the calls of ``model`` inside this context.

    Where an activation layer takes a layer's output, the sample is taken behind it. In a
    ``tf.function`` the samples are made in the graph that is traced inside this context. All
    wrappers come off again, also after an exception.
    """
    probe = Probe()
    newest: list[Any] = ["", None]
    with ExitStack() as stack:
        for name, layer in leaves(model).items():
            stack.enter_context(calls_through(layer, _watching(name, layer, probe, newest)))
        yield probe


def _watching(name: str, layer: keras.Layer, probe: Probe, newest: list[Any]) -> Callable[..., Any]:
    def call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        output = original(*args, **kwargs)
        behind = _is_activation(layer) and args and args[0] is newest[1]
        if not isinstance(output, tf.Tensor) or not (behind or layer.weights):
            return output
        shown = newest[0] if behind else name
        output = _with_gradient(output, lambda g: probe.add(shown, "gradient", g))
        newest[:] = [shown, output]
        probe.add(shown, "activation", output)
        return output

    return call


def _is_activation(layer: keras.Layer) -> bool:
    return isinstance(layer, keras.layers.Activation) or "activations" in type(layer).__module__


def _with_gradient(output: tf.Tensor, see: Callable[[tf.Tensor], None]) -> tf.Tensor:
    """The same values, whose gradient is shown to ``see`` on its way back."""

    @tf.custom_gradient
    def identity(x: tf.Tensor) -> Any:
        def backward(gradient: tf.Tensor) -> tf.Tensor:
            see(gradient)
            return gradient

        return tf.identity(x), backward

    return identity(output)
