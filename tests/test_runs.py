"""Runs: their states, their threads, what both wings see, and what goes wrong in between."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import torch
from torch import nn

import dlplay
from dlplay.errors import DlplayError, ModelError, RunError, SettingError
from dlplay.runs import Snapshot, Training, train
from dlplay.settings import Network, Optimizer, Precision, Run, Schedule, Seed

LONG = Run(network=Network("mlp", 8, 1), data="moons", epochs=10_000)
SHORT = LONG.replace(epochs=2)  # 50 steps
TORCH = SHORT.replace(wings=["pytorch"])  # where one wing is as good as two
BRIEF = SHORT.replace(batch_size=4)  # for 20 examples of one's own, 16 of them to train on
DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(20, 5)).astype(np.float32), np.arange(20) % 3
WAIT = 60.0

pytestmark = pytest.mark.usefixtures("runs_end")


class Ear:
    """A view that hears everything and can be waited for."""

    def __init__(self, due: bool = True) -> None:
        self.heard: list[Snapshot] = []
        self._due = due
        self._news = threading.Condition()

    def due(self) -> bool:
        return self._due

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        with self._news:
            self.heard.append(snapshot)
            self._news.notify_all()

    def until(self, wanted: Callable[[Snapshot], bool]) -> Snapshot:
        """The newest snapshot, as soon as it is as wanted."""
        with self._news:
            assert self._news.wait_for(lambda: self.heard and wanted(self.heard[-1]), WAIT)
            return self.heard[-1]

    @property
    def states(self) -> list[str]:
        """The states in the order in which they came."""
        states = [snapshot.state for snapshot in self.heard]
        return [s for s, before in zip(states, [None, *states], strict=False) if s != before]


@pytest.fixture
def stopped() -> Iterator[Callable[..., tuple[Training, Ear]]]:
    """Makes a run with an ear on it; all runs are stopped at the end."""
    made: list[Training] = []

    def make(settings: Run, **own: Any) -> tuple[Training, Ear]:
        training, ear = Training(settings, **own), Ear()
        made.append(training)
        training.follow(ear)
        return training, ear

    yield make
    for training in made:
        training.stop()


def trains(training: Training) -> bool:
    return any(thread.name == "dlplay-run" for thread in threading.enumerate())


# -- states ---------------------------------------------------------------------------------------


def test_a_run_goes_from_ready_to_finished(stopped: Any) -> None:
    training, ear = stopped(SHORT)
    assert (training.state, training.snapshot().step) == ("ready", 0)
    last = training.start().wait(WAIT)
    assert (last.state, last.step, last.steps, last.epoch, last.remaining) == (
        *("finished", 50, 50, 2, 0.0),
    )
    assert ear.states == ["ready", "preparing", "running", "finished"]
    assert ear.heard[-1].step == 50
    for curve in last.curves.values():
        assert len(curve.loss) == len(curve.accuracy) == 50
        assert curve.test_steps.tolist() == [25, 50]
        assert len(curve.test_loss) == len(curve.test_accuracy) == 2
        assert 0 < curve.seconds < last.elapsed


def test_pause_go_on_step_and_stop(stopped: Any) -> None:
    training, ear = stopped(LONG)
    training.start()
    ear.until(lambda s: s.step >= 3)
    paused = training.pause().wait(WAIT)
    assert (paused.state, trains(training)) == ("paused", False)
    stepped = training.step().wait(WAIT)
    assert (stepped.state, stepped.step) == ("paused", paused.step + 1)
    training.start()
    further = ear.until(lambda s: s.state == "running" and s.step >= paused.step + 3)
    assert np.array_equal(further.curves["keras"].loss[: paused.step], paused.curves["keras"].loss)
    end = training.stop().wait(WAIT)
    assert (end.state, trains(training)) == ("stopped", False)
    assert training.step().wait(WAIT).step == 1  # a new run


def test_a_paused_run_is_stopped_without_a_thread(stopped: Any) -> None:
    training, ear = stopped(TORCH)
    training.step().wait(WAIT)
    assert training.stop().state == "stopped"
    assert ear.heard[-1].state == "stopped"


def test_what_makes_no_sense_in_a_state_does_nothing(stopped: Any) -> None:
    training, _ = stopped(TORCH)
    for idle in (training.pause, training.stop):
        assert idle().state == "ready"
    training.start().start().wait(WAIT)
    for idle in (training.pause, training.stop):
        assert idle().state == "finished"
    assert training.start().wait(WAIT).step == 50  # anew


def test_pressed_wildly_it_still_ends_as_told(stopped: Any) -> None:
    training, _ = stopped(LONG.replace(wings=["pytorch"]))
    presses = [training.start, training.pause, training.step, training.stop]
    for press in DRAW.integers(0, len(presses), 300):
        presses[press]()
    training.start()
    training.stop()
    assert training.wait(WAIT).state in ("stopped", "ready")


def test_wait_has_a_limit(stopped: Any) -> None:
    training, _ = stopped(LONG)
    with pytest.raises(RunError, match=r"still trains after 0.2 s"):
        training.start().wait(0.2)
    assert training.state in ("preparing", "running")


def test_a_snapshot_of_a_run_that_trains(stopped: Any) -> None:
    training, ear = stopped(LONG)
    training.start()
    ear.until(lambda s: s.step >= 1)
    one, other = training.snapshot(WAIT), training.snapshot(WAIT)
    assert 1 <= one.step < other.step
    assert other.state == "running"
    assert len(one.curves["pytorch"].loss) == one.step


def test_a_snapshot_never_changes(stopped: Any) -> None:
    training, ear = stopped(LONG)
    training.start()
    early = ear.until(lambda s: s.step >= 5)
    loss = early.curves["keras"].loss.copy()
    ear.until(lambda s: s.step >= early.step + 20)
    assert np.array_equal(loss, early.curves["keras"].loss)


def test_other_work_goes_on_while_it_trains(stopped: Any) -> None:
    training, ear = stopped(LONG)
    begin = time.perf_counter()
    training.start()
    assert time.perf_counter() - begin < 0.5
    ear.until(lambda s: s.step >= 1)
    assert training.state == "running"


# -- the learning rate ----------------------------------------------------------------------------


def test_a_new_learning_rate_acts_in_both_wings(stopped: Any) -> None:
    run = LONG.replace(learning_rate=0.125, optimizer=Optimizer(momentum=0))
    training, ear = stopped(run)
    training.start()
    ear.until(lambda s: s.step >= 3)
    training.settings = run.replace(learning_rate=1e-30)
    at = ear.until(lambda s: s.learning_rate == 1e-30).step
    last = ear.until(lambda s: s.step >= at + 60)  # two more epochs, in which nothing moves
    for curve in last.curves.values():
        full = curve.test_loss[curve.test_steps > at]
        assert len(full) >= 2
        assert (full == full[0]).all()
    assert training.settings.learning_rate == 1e-30


def test_a_schedule_multiplies_the_learning_rate() -> None:
    run = TORCH.replace(learning_rate=0.5, schedule=Schedule("linear", final=0.5))
    assert Training(run).start().wait(WAIT).learning_rate == pytest.approx(0.25)


def test_nothing_else_changes_while_it_trains(stopped: Any) -> None:
    training, ear = stopped(LONG)
    training.start()
    ear.until(lambda s: s.step >= 1)
    with pytest.raises(RunError, match=r"stop it first\.$"):
        training.settings = LONG.replace(batch_size=8)
    assert training.settings == LONG
    training.pause().wait(WAIT)
    training.settings = SHORT  # of a paused run it may: the next start is a new run
    assert training.state == "ready"
    assert training.start().wait(WAIT).steps == 50


# -- both wings see the same ----------------------------------------------------------------------


def test_both_wings_see_the_same_batches(stopped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[np.ndarray]] = {"pytorch": [], "keras": []}
    for name, rows in seen.items():
        stepper = dlplay.frameworks.load_wing(name).steps.Stepper
        train_on = stepper.train
        monkeypatch.setattr(
            stepper,
            "train",
            lambda self, some, keep=rows, on=train_on: (keep.append(some), on(self, some)),
        )
    training, ear = stopped(SHORT)
    training.unfollow(ear)
    training.start().wait(WAIT)
    assert len(seen["pytorch"]) == 50
    assert all(map(np.array_equal, seen["pytorch"], seen["keras"]))
    for epoch in (slice(25), slice(25, 50)):
        assert sorted(np.concatenate(seen["pytorch"][epoch])) == [*range(800)]
    assert not np.array_equal(seen["pytorch"][0], seen["pytorch"][25])


@pytest.mark.parametrize("wings", [["pytorch"], ["keras"], ["pytorch", "keras"]])
def test_a_seed_repeats_a_run_bit_by_bit(wings: list[str]) -> None:
    run = SHORT.replace(network={"kind": "cnn", "width": 4}, data="digits", batch_size=256)
    run = run.replace(wings=wings, epochs=1)
    one, same, other = (
        Training(run.replace(seed=Seed(seed))).start().wait(WAIT).curves for seed in (1, 1, 2)
    )
    for wing in wings:
        assert np.array_equal(one[wing].loss, same[wing].loss)
        assert np.array_equal(one[wing].test_loss, same[wing].test_loss)
        assert not np.array_equal(one[wing].loss, other[wing].loss)


def test_the_default_run_learns_the_digits_in_both_wings() -> None:
    last = train().wait(200)
    for wing, curve in last.curves.items():
        assert curve.test_accuracy[-1] >= 0.95, wing


# -- two runs, and none -------------------------------------------------------------------------


def test_a_second_run_pauses_the_first(stopped: Any) -> None:
    (first, ear), (second, _) = stopped(LONG), stopped(TORCH)
    first.start()
    ear.until(lambda s: s.step >= 1)
    assert second.start().wait(WAIT).state == "finished"
    paused = first.wait(WAIT)
    assert (paused.state, paused.message) == ("paused", "Paused, because another run was started.")
    first.start()
    ear.until(lambda s: s.state == "running" and s.step > paused.step)
    assert first.stop().wait(WAIT).state == "stopped"


@pytest.mark.parametrize("state", ["finished", "paused", "stopped", "failed"])
def test_no_thread_is_left(state: str, stopped: Any) -> None:
    own = {"models": {"pytorch": Failing(1)}, "data": (X, Y)} if state == "failed" else {}
    training, ear = stopped(LONG if state in ("paused", "stopped") else TORCH, **own)
    training.start()
    if state in ("paused", "stopped"):
        ear.until(lambda s: s.step >= 1)
        {"paused": training.pause, "stopped": training.stop}[state]()
    ear.until(lambda s: s.state == state)
    for thread in threading.enumerate():
        if thread.name == "dlplay-run":
            thread.join(5)
    assert not trains(training)
    assert training.state == state


@pytest.mark.parametrize("wings", [("pytorch",), ("pytorch", "keras")])
def test_python_ends_cleanly_in_the_middle_of_a_run(wings: tuple[str, ...]) -> None:
    code = (
        "import dlplay\n"
        f"run = dlplay.train(epochs=10_000, wings={wings})\n"
        "while run.snapshot().step < 2: pass\n"
        "print('end')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "Traceback" not in done.stderr


# -- what fails -----------------------------------------------------------------------------------


class Failing(nn.Module):
    """Raises at its call number ``at``."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.dense, self.left = nn.Linear(5, 3), at

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.left -= 1
        if self.left == 0:
            raise ZeroDivisionError("no more\nand a second line")
        return self.dense(x)


@pytest.mark.parametrize("at", [1, 2, 5])
def test_an_exception_is_said_and_the_run_can_start_again(at: int, stopped: Any) -> None:
    training, ear = stopped(BRIEF, models={"pytorch": Failing(at)}, data=(X, Y))
    training.start()
    failed = ear.until(lambda s: s.state == "failed")
    assert failed.message == "ZeroDivisionError: no more"
    with pytest.raises(ZeroDivisionError):
        training.wait(WAIT)
    assert isinstance(training.error, ZeroDivisionError)
    last = training.start().wait(WAIT)
    assert (last.state, last.message, training.error) == ("finished", "", None)


def test_settings_that_the_data_refuse_fail_with_their_sentence(stopped: Any) -> None:
    training, ear = stopped(SHORT.replace(batch_size=801))
    with pytest.raises(SettingError, match=r"The batch size is 801, .* has 800 training examples"):
        training.start().wait(WAIT)
    assert ear.heard[-1].message == str(training.error)
    training.settings = SHORT
    assert training.start().wait(WAIT).state == "finished"


class Broken(Ear):
    """A view that fails at its second picture of a run that trains."""

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        super().show(snapshot, force)
        if snapshot.step >= 2:
            raise ZeroDivisionError("view")


def test_a_view_that_fails_is_taken_off(stopped: Any) -> None:
    training, good = stopped(TORCH)
    bad = Broken()
    training.follow(bad)
    assert training.start().wait(WAIT).state == "finished"
    assert bad.heard[-1].step == 2
    assert good.heard[-1].step == 50
    assert any("ZeroDivisionError: view" in snapshot.message for snapshot in good.heard)


# -- views ----------------------------------------------------------------------------------------


def test_a_view_is_asked_before_a_picture_is_made(stopped: Any) -> None:
    training, _ = stopped(TORCH)
    deaf = Ear(due=False)
    training.follow(deaf)
    training.start().wait(WAIT)
    assert deaf.states == ["ready", "preparing", "running", "finished"]
    assert len(deaf.heard) <= 5


def test_pictures_come_at_most_twenty_times_a_second(stopped: Any) -> None:
    from dlplay.views import TrainingView

    sent: list[float] = []
    view = TrainingView()
    view.observe(lambda _: sent.append(time.perf_counter()), "frame")
    training, ear = stopped(LONG)
    training.unfollow(ear)
    training.follow(view)
    training.start()
    while len(sent) < 25 and training.state in ("preparing", "running"):
        training.snapshot()
    steps = training.pause().wait(WAIT).step
    running = np.array(sent[4:-2])
    assert len(running) / (running[-1] - running[0]) < 22
    assert steps > 2 * len(sent)  # most steps send nothing: pictures are of the newest state


def test_a_picture_looks_inside_each_layer(stopped: Any) -> None:
    training, ear = stopped(LONG)
    training.step().wait(WAIT)
    for curve in ear.heard[-1].curves.values():
        assert [look.what for look in curve.summaries] == ["activation", "gradient"] * 2
        assert curve.summaries_step == 0


# -- models and data of your own ------------------------------------------------------------------


def torch_model(outputs: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.1), nn.Linear(4, outputs))


def keras_model(outputs: int = 3) -> keras.Sequential:
    layers = keras.layers
    return keras.Sequential([keras.Input((5,)), layers.Dense(4), layers.Dense(outputs)])


class Unbuilt(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3)

    def call(self, x: Any) -> Any:
        return self.dense(x)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x[..., None])[0][:, -1])


def compiled() -> keras.Model:
    model = keras_model()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


OWN: dict[str, Callable[[], dict[str, Any]]] = {
    "both": lambda: {"pytorch": torch_model(), "keras": keras_model()},
    "torch": lambda: {"pytorch": torch_model()},
    "keras": lambda: {"keras": keras_model()},
    "recurrent": lambda: {"pytorch": Recurrent()},
    "lazy": lambda: {"pytorch": nn.Sequential(nn.LazyLinear(4), nn.LazyLinear(3))},
    "not built": lambda: {"keras": Unbuilt()},
    "compiled": lambda: {"keras": compiled()},
    "more outputs than classes": lambda: {"pytorch": torch_model(9), "keras": keras_model(9)},
}


@pytest.mark.parametrize("name", OWN)
def test_models_of_your_own_are_trained_where_they_stand(name: str, stopped: Any) -> None:
    models = OWN[name]()
    training, ear = stopped(BRIEF, models=models, data=(X, Y))
    last = training.start().wait(WAIT)
    assert (last.state, [*last.curves]) == ("finished", [*models])
    assert all(training.models[wing] is model for wing, model in models.items())
    assert all(np.isfinite(curve.loss).all() for curve in last.curves.values())
    assert ear.heard[-1].curves[next(iter(models))].summaries


def test_a_float64_model_trains_in_float64() -> None:
    run = TORCH.replace(precision=Precision("float64"), batch_size=1)
    train(run, models={"pytorch": torch_model().double()}, data=(X, Y)).wait(WAIT)


class Tuple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.dense(x), x


BAD_MODELS: list[tuple[Any, str]] = [
    ({"pytorch": Tuple()}, r"PyTorch model gives no single tensor .* at least \(2, 3\)\.$"),
    ({"pytorch": torch_model(2)}, r"PyTorch model gives an output of shape \(2, 2\) "),
    ({"keras": keras_model(2)}, r"Keras model gives an output of shape \(2, 2\) "),
    ({"pytorch": nn.Sequential(nn.Linear(5, 1), nn.Flatten(0))}, r"an output of shape \(2,\)"),
    ({"pytorch": nn.Flatten()}, r"PyTorch model has no parameters to train\.$"),
    (
        {"keras": keras.Sequential([keras.Input((5,)), keras.layers.Flatten()])},
        r"Keras model has no ",
    ),
    ({"pytorch": torch_model().double()}, r"is in float64, and Run.precision is float32"),
    ({"pytorch": keras_model()}, r"must be a torch.nn.Module, and this is a Sequential\.$"),
    ({"keras": torch_model()}, r"must be a keras.Model, and this is a Sequential\.$"),
    ({"pytorch": nn.Linear}, r"must be a torch.nn.Module"),
    ({"keras": None}, r"must be a keras.Model"),
    ({"torch": torch_model()}, r'models must be {"pytorch": net, '),
    ({}, r"models must be"),
    (torch_model(), r"models must be"),
    ("net", r"models must be"),
]


@pytest.mark.parametrize(("models", "sentence"), BAD_MODELS, ids=range(len(BAD_MODELS)))
def test_models_that_cannot_be_trained_get_a_sentence(models: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as error:
        train(BRIEF, models=models, data=(X, Y)).wait(WAIT)
    assert "\n" not in str(error.value)


BAD_DATA: list[tuple[Any, str]] = [
    (5, "must be a dlplay.data.Dataset or a pair"),
    ((X,), "a pair"),
    ((X, Y, Y), "a pair"),
    (([[1], [1, 2]], Y), "a pair"),
    ((np.array([["a"] * 5] * 20), Y), "x must be numbers"),
    ((X.astype(object), Y), "x must be numbers"),
    ((X * 1j, Y), "x must be numbers"),
    ((X[:, 0], Y), "x must have an axis of examples"),
    ((np.float32(3), Y), "x must have an axis"),
    ((X[:, :0], Y), "at least one of their features"),
    ((X[:0], Y[:0]), "at least one of their features"),
    ((X, Y[:19]), "y must be one whole number"),
    ((X, Y.astype(float)), "y must be one whole number"),
    ((X, Y[:, None]), "y must be one whole number"),
    ((X, Y.astype(bool)), "y must be one whole number"),
    ((X, Y.astype(str)), "y must be one whole number"),
    ((X[:4], Y[:4]), "at least five examples"),
    ((X, Y - 1), "y goes from -1 to 1: number the classes from 0"),
    ((X, Y + 10**12), "number the classes from 0"),
    ((np.where(np.arange(100).reshape(20, 5) == 17, np.nan, X), Y), "first in example 3"),
]


@pytest.mark.parametrize(("data", "sentence"), BAD_DATA, ids=range(len(BAD_DATA)))
def test_data_that_cannot_be_used_get_a_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence) as error:
        train(data=data)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "data",
    [
        (X.tolist(), Y.tolist()),
        (torch.from_numpy(X), torch.from_numpy(Y)),
        ((X > 0), Y.astype(np.uint8)),
        (X.astype(np.float16), np.zeros(20, int)),
        ((X * 9).astype(int), Y),
    ],
    ids=["lists", "tensors", "booleans, bytes", "float16, one class", "whole numbers"],
)
def test_data_of_your_own_in_any_form(data: Any) -> None:
    last = train(SHORT.replace(batch_size=1, epochs=1), data=data).wait(WAIT)
    assert (last.state, last.steps) == ("finished", 16)  # every fifth example is for the test


@pytest.mark.parametrize("settings", [5, "digits", {"epochs": 3}, torch_model(), Network()])
def test_settings_that_are_none_get_a_sentence(settings: Any) -> None:
    for take in (train, Training, dlplay.labs.training):
        with pytest.raises(SettingError, match=r"settings must be a dlplay.settings.Run"):
            take(settings)


@pytest.mark.parametrize("changes", [{"epochs": 0}, {"data": "cats"}, {"speed": 3}])
def test_changes_that_are_not_valid_start_nothing(changes: dict[str, Any]) -> None:
    with pytest.raises(DlplayError):
        train(**changes)
    assert not any(thread.name == "dlplay-run" for thread in threading.enumerate())
