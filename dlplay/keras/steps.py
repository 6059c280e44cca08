"""One training step in Keras, compiled."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dlplay.errors import ModelError
from dlplay.keras import layers, losses, optimizers, probes
from dlplay.keras.arrays import to_tensor
from dlplay.keras.devices import resolve
from dlplay.records import Summary, summaries
from dlplay.settings import Run

_ROWS = tf.TensorSpec([None], tf.int64)


class Stepper:
    """Makes the training steps of one model on one set of examples.

    Parameters
    ----------
    model : keras.Model
        Gives logits, (batch, classes).
    x, y : numpy.ndarray
        Training examples, float, channels last; labels, int. Both are moved to the device once.
    settings : Run
        Optimizer, learning rate, precision and placement are read from it.

    Attributes
    ----------
    output_shape : tuple of int or None
        Of the model's output for the first two examples; None where that is no single tensor.

    Raises
    ------
    ModelError
        For what is no Keras model, one without parameters to train, or one in another
        floating-point type than the settings say.
    """

    def __init__(self, model: keras.Model, x: np.ndarray, y: np.ndarray, settings: Run) -> None:
        if not isinstance(model, keras.Model):
            raise ModelError(
                f"The Keras model must be a keras.Model, and this is a {type(model).__name__}."
            )
        self._device = resolve(settings.placement)
        self._precision = settings.precision
        self.model = model
        self._x, self._y = self._move(x), self._move(y)
        self.output_shape = self._try()
        if not model.trainable_variables:
            raise ModelError("The Keras model has no parameters to train.")
        self._optimizer = optimizers.make(model, settings.optimizer, settings.learning_rate)
        self._history: list[tf.Tensor] = []
        self._keys: list[tuple[str, str]] = []
        self._train = tf.function(self._step, input_signature=[_ROWS])
        self._look = tf.function(self._watched_step, input_signature=[_ROWS])
        self._logits = tf.function(self._forward, reduce_retracing=True)

    def set_learning_rate(self, learning_rate: float) -> None:
        """Use another learning rate from the next step on."""
        optimizers.set_learning_rate(self._optimizer, learning_rate)

    def train(self, rows: np.ndarray) -> None:
        """Make one step on the examples at ``rows``; loss and accuracy go to ``drain``."""
        with tf.device(self._device):
            self._history.append(self._train(rows))

    def look(self, rows: np.ndarray) -> tuple[Summary, ...]:
        """The same step, and what each layer's activations and gradients were in it."""
        with tf.device(self._device):
            scores, table = self._look(rows)
        self._history.append(scores)
        return summaries(self._keys, table.numpy())

    def drain(self) -> np.ndarray:
        """Loss and accuracy of each step since the last call: (steps, 2), float64."""
        history, self._history = self._history, []
        if not history:
            return np.empty((0, 2))
        return np.array([scores.numpy() for scores in history], dtype=np.float64)

    def evaluate(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Mean loss and accuracy on other examples, in inference mode."""
        totals = np.zeros(2)
        for start in range(0, len(x), 1000):
            labels = self._move(y[start : start + 1000])
            with tf.device(self._device):
                scores = self._logits(self._move(x[start : start + 1000]), labels)
            totals += scores.numpy() * len(labels)
        return float(totals[0] / len(x)), float(totals[1] / len(x))

    def _try(self) -> tuple[int, ...] | None:
        """Call the model once: it tells what it gives, and one that is not built is built."""
        with tf.device(self._device):
            output = layers.infer(self.model, self._x[:2])
        double = layers.home(self.model)[0].name == "float64"
        if double != (self._precision.name == "float64") and self.model.weights:
            raise ModelError(
                f"The Keras model is in {'float64' if double else 'float32'}, and Run.precision is"
                f" {self._precision.name}: make them the same."
            )
        return tuple(output.shape) if isinstance(output, tf.Tensor) else None

    def _step(self, rows: tf.Tensor) -> tf.Tensor:
        x, y = tf.gather(self._x, rows), tf.gather(self._y, rows)
        with tf.GradientTape() as tape:
            logits = self.model(x, training=True)
            loss = losses.cross_entropy(logits, y)
        variables = self.model.trainable_variables
        self._optimizer.apply(tape.gradient(loss, variables), variables)
        return _scores(logits, loss, y)

    def _watched_step(self, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with probes.watch(self.model) as probe:
            scores = self._step(rows)
        self._keys = probe.keys()
        return scores, probe.reduce()

    def _forward(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        logits = self.model(x, training=False)
        return _scores(logits, losses.cross_entropy(logits, y), y)

    def _move(self, array: np.ndarray) -> Any:
        return to_tensor(array, self._precision, self._device)


def _scores(logits: tf.Tensor, loss: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Loss and accuracy in one tensor, so that they are fetched at once."""
    right = tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels
    return tf.stack([loss, tf.reduce_mean(tf.cast(right, loss.dtype))])
