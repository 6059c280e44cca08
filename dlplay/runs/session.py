"""The training itself: the one loop's body, without threads and without buttons."""

import math
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from dlplay.data import Dataset, batches, load
from dlplay.errors import ModelError
from dlplay.frameworks import load_wing, title
from dlplay.runs.history import History
from dlplay.runs.snapshot import Snapshot
from dlplay.settings import Run
from dlplay.twins import twins


class Session:
    """One run, from its first step to its last, in one wing or in both.

    Parameters
    ----------
    settings : Run
    models : mapping of str to model, optional
        Models of the reader's own, by wing, that give logits; they are trained from where they
        stand. Where left out, ``settings.network`` is built and initialized, and both wings start
        from the same weights: those that the first wing drew.
    data : Dataset, optional
        Data of the reader's own, in place of ``settings.data``.

    Raises
    ------
    DlplayError
        Where settings, models and data do not go together; the message says what to change.
    """

    def __init__(
        self,
        settings: Run,
        models: Mapping[str, Any] | None = None,
        data: Dataset | None = None,
    ) -> None:
        wings = tuple(models) if models else settings.wings
        self._rooms = {wing: load_wing(wing) for wing in wings}
        self.data = data or load(settings.data, settings.seed.value)
        self.settings = settings
        self.learning_rate = settings.learning_rate
        count = len(self.data.x_train)
        batches(count, settings.batch_size, settings.seed.value, epoch=0)  # refuses a wrong size
        self.steps_per_epoch = math.ceil(count / settings.batch_size)
        self.steps = self.steps_per_epoch * settings.epochs
        self.step = 0
        self.models = dict(models) if models else self._build()
        self._steppers = {
            wing: room.steps.Stepper(
                self.models[wing], self.data.x_train, self.data.y_train, settings
            )
            for wing, room in self._rooms.items()
        }
        if models:
            self._check_models()
        self._histories = {wing: History(self.steps, settings.epochs) for wing in wings}
        self._rate = math.nan
        self._elapsed = 0.0
        self._batches = self._order()

    @property
    def finished(self) -> bool:
        """Whether all steps have been made."""
        return self.step >= self.steps

    def enter_thread(self) -> None:
        """Set each framework's threads for the thread that calls ``tick``; call it there."""
        for room in self._rooms.values():
            room.devices.limit_threads()

    def tick(self, look: bool = False) -> None:
        """Make one step in every wing, on the same batch; evaluate where an epoch ends.

        With ``look``, the step is watched: each layer's activations and gradients are kept.
        """
        begin = perf_counter()
        rows = next(self._batches)
        self._apply_rate()
        for wing, stepper in self._steppers.items():
            start = perf_counter()
            if look:
                self._histories[wing].add_look(self.step, stepper.look(rows))
            else:
                stepper.train(rows)
            self._histories[wing].seconds += perf_counter() - start
        self.step += 1
        if self.step % self.steps_per_epoch == 0:
            self._evaluate()
        self._elapsed += perf_counter() - begin

    def snapshot(self, state: str, message: str = "") -> Snapshot:
        """The run at this moment; call it where ``tick`` is called, or when nothing runs."""
        for wing, stepper in self._steppers.items():
            self._histories[wing].add(stepper.drain())
        pace = self._elapsed / self.step if self.step else None
        return Snapshot(
            state=state,
            step=self.step,
            steps=self.steps,
            epoch=min(self.step // self.steps_per_epoch + 1, self.settings.epochs),
            epochs=self.settings.epochs,
            learning_rate=self.learning_rate if math.isnan(self._rate) else self._rate,
            elapsed=self._elapsed,
            remaining=None if pace is None else pace * (self.steps - self.step),
            curves={wing: history.curve() for wing, history in self._histories.items()},
            message=message,
        )

    def _build(self) -> dict[str, Any]:
        settings, shape = self.settings, self.data.shape
        models = {}
        for wing, room in self._rooms.items():
            room.seeds.seed(settings.seed.value)
            models[wing] = room.networks.build(
                settings.network, shape, len(self.data.classes), settings.precision
            )
        first = next(iter(models))
        self._rooms[first].initializers.apply(models[first], settings.initializer)
        if len(models) == 2:
            example = self.data.x_train[:2]
            twins(models["pytorch"], models["keras"], example).copy_weights(source=first)
        return models

    def _check_models(self) -> None:
        """Refuse models of the reader's own that cannot learn these classes.

        Raises
        ------
        ModelError
            It names the framework, what the model gives, and what is wanted.
        """
        classes = len(self.data.classes)
        for wing, stepper in self._steppers.items():
            shape = stepper.output_shape
            if shape is None or len(shape) != 2 or shape[1] < classes:
                gives = "no single tensor" if shape is None else f"an output of shape {shape}"
                raise ModelError(
                    f"The {title(wing)} model gives {gives} for two examples, but must give logits,"
                    f" one for each class: at least (2, {classes})."
                )

    def _order(self) -> Iterator[np.ndarray]:
        for epoch in range(self.settings.epochs):
            yield from batches(
                len(self.data.x_train),
                self.settings.batch_size,
                self.settings.seed.value,
                epoch,
            )

    def _apply_rate(self) -> None:
        rate = self.learning_rate * self.settings.schedule.factor(self.step, self.steps)
        if rate != self._rate:
            self._rate = rate
            for stepper in self._steppers.values():
                stepper.set_learning_rate(rate)

    def _evaluate(self) -> None:
        for wing, stepper in self._steppers.items():
            scores = stepper.evaluate(self.data.x_test, self.data.y_test)
            self._histories[wing].add_test(self.step, *scores)
