"""One training step in PyTorch."""

import numpy as np
import torch
from torch import nn

from dlplay.errors import ModelError
from dlplay.pytorch import layers, losses, optimizers, probes
from dlplay.pytorch.arrays import to_tensor
from dlplay.pytorch.devices import resolve
from dlplay.pytorch.precision import scope
from dlplay.records import Summary, summaries
from dlplay.settings import Run

_MANY = (
    256  # steps after which their scores are made, so that a long run without a view stays small
)


class Stepper:
    """Makes the training steps of one model on one set of examples.

    Parameters
    ----------
    model : torch.nn.Module
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
        For what is no PyTorch model, one without parameters to train, or one in another
        floating-point type than the settings say.
    """

    def __init__(self, model: nn.Module, x: np.ndarray, y: np.ndarray, settings: Run) -> None:
        if not isinstance(model, nn.Module):
            raise ModelError(
                f"The PyTorch model must be a torch.nn.Module, and this is a"
                f" {type(model).__name__}."
            )
        self._device = resolve(settings.placement)
        self._precision = settings.precision
        self.model = model.to(self._device)
        self._x, self._y = _channels_last(self._move(x)), self._move(y)
        self.output_shape = self._try()
        if not any(p.requires_grad for p in model.parameters()):
            raise ModelError("The PyTorch model has no parameters to train.")
        self._optimizer = optimizers.make(model, settings.optimizer, settings.learning_rate)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._recent: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._scores: list[np.ndarray] = []
        self.model.train()

    def set_learning_rate(self, learning_rate: float) -> None:
        """Use another learning rate from the next step on."""
        optimizers.set_learning_rate(self._optimizer, learning_rate)

    def train(self, rows: np.ndarray) -> None:
        """Make one step on the examples at ``rows``; loss and accuracy go to ``drain``."""
        index = torch.from_numpy(rows).to(self._device)
        x, y = self._pick(index), self._y.index_select(0, index)
        for parameter in self._parameters:  # as zero_grad() does, without its bookkeeping
            parameter.grad = None
        with scope(self._precision, self._device):
            logits = self.model(x)
            loss = losses.cross_entropy(logits, y)
        loss.backward()
        self._optimizer.step()
        self._recent.append((loss.detach(), logits.detach(), y))
        if len(self._recent) == _MANY:
            self._score()

    def look(self, rows: np.ndarray) -> tuple[Summary, ...]:
        """The same step, and what each layer's activations and gradients were in it."""
        with probes.watch(self.model) as probe:
            self.train(rows)
        return summaries(probe.keys(), probe.reduce().cpu().numpy())

    def drain(self) -> np.ndarray:
        """Loss and accuracy of each step since the last call: (steps, 2), float64."""
        self._score()
        scores, self._scores = self._scores, []
        return np.concatenate(scores) if scores else np.empty((0, 2))

    def evaluate(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Mean loss and accuracy on other examples, in inference mode."""
        self.model.eval()
        totals = np.zeros(2)
        with torch.no_grad(), scope(self._precision, self._device):
            for start in range(0, len(x), 1000):
                labels = self._move(y[start : start + 1000])
                logits = self.model(self._move(x[start : start + 1000]))
                loss = losses.cross_entropy(logits, labels)
                right = (logits.argmax(1) == labels).double().mean()
                totals += np.array([loss.item(), right.item()]) * len(labels)
        self.model.train()
        return float(totals[0] / len(x)), float(totals[1] / len(x))

    def _score(self) -> None:
        """Turn the newest steps into loss and accuracy, all at once.

        One by one costs a small step several per cent (``python -m benchmarks.steps``).
        """
        if not self._recent:
            return
        losses, logits, labels = zip(*self._recent, strict=True)
        self._recent.clear()
        right = (torch.cat(logits).argmax(1) == torch.cat(labels)).double().cpu().numpy()
        sizes = np.array([len(part) for part in labels])
        accuracy = np.add.reduceat(right, np.cumsum(sizes) - sizes) / sizes
        loss = torch.stack(losses).double().cpu().numpy()
        self._scores.append(np.stack([loss, accuracy], axis=1))

    def _pick(self, index: torch.Tensor) -> torch.Tensor:
        """Some examples, by index_select, which takes half the time of ``x[index]``.

        Images stay in channels-last memory.
        """
        if self._x.ndim < 4:
            return self._x.index_select(0, index)
        return self._x.movedim(1, -1).index_select(0, index).movedim(-1, 1)

    def _try(self) -> tuple[int, ...] | None:
        """Call the model once: it tells what it gives, and a lazy one makes its weights."""
        double = layers.home(self.model)[0].name == "float64"
        if double != (self._precision.name == "float64") and any(
            True for _ in self.model.parameters()
        ):
            raise ModelError(
                f"The PyTorch model is in {'float64' if double else 'float32'}, and"
                f" Run.precision is {self._precision.name}: make them the same."
            )
        output = layers.infer(self.model, self._x[:2])
        return tuple(output.shape) if isinstance(output, torch.Tensor) else None

    def _move(self, array: np.ndarray) -> torch.Tensor:
        return to_tensor(array, self._precision, self._device)


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    """The same images in channels-last memory, which PyTorch convolves faster.

    Source: https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
    """
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if x.ndim >= 4 else x
