"""The training lab without a browser: a knob is moved by setting its widget's value."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import IPython
import ipywidgets as widgets
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import nn

import dlplay
from dlplay.errors import RunError, SettingError
from dlplay.labs import TrainingLab, training
from dlplay.runs import Snapshot
from dlplay.settings import Network, Optimizer, Run, Seed

RUN = Run(network=Network("mlp", 8, 1), data="moons", epochs=100, wings=["pytorch"])
X, Y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 3
WAIT = 60.0

pytestmark = pytest.mark.usefixtures("runs_end")

#: Every knob: its label, a place that it can be moved to, and the setting that follows.
MOVES: dict[str, tuple[Any, str]] = {
    "data": ("spirals", "data"),
    "network": ("mlp", "network.kind"),
    "width": (5, "network.width"),
    "depth": (3, "network.depth"),
    "activation": ("tanh", "network.activation"),
    "initializer": ("zeros", "initializer.name"),
    "gain": (2, "initializer.gain"),
    "optimizer": ("adam", "optimizer.name"),
    "momentum": (0.5, "optimizer.momentum"),
    "schedule": ("cosine", "schedule.name"),
    "warm-up": (0.1, "schedule.warmup"),
    "batch size": (64, "batch_size"),
    "epochs": (7, "epochs"),
    "precision": ("float64", "precision.name"),
    "device": ("cpu", "placement.device"),
    "seed": (9, "seed.value"),
    "frameworks": (("keras",), "wings"),
    "learning rate": (0.5, "learning_rate"),
}


@pytest.fixture
def opened() -> Iterator[Any]:
    """Opens labs, and closes them at the end."""
    labs: list[TrainingLab] = []

    def make(*arguments: Any, **named: Any) -> TrainingLab:
        labs.append(training(*arguments, **named))
        return labs[-1]

    yield make
    for lab in labs:
        lab.close()


def inside(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from inside(child)


def knobs(lab: TrainingLab) -> dict[str, widgets.ValueWidget]:
    """The knobs by their labels."""
    return {
        widget.description: widget
        for widget in inside(lab)
        if getattr(widget, "description", "") and not isinstance(widget, widgets.Button)
    }


def buttons(lab: TrainingLab) -> list[widgets.Button]:
    return [widget for widget in inside(lab) if isinstance(widget, widgets.Button)]


def labels(lab: TrainingLab) -> list[str]:
    """What can be pressed."""
    return [button.description for button in buttons(lab) if not button.disabled]


def press(lab: TrainingLab, label: str) -> None:
    (button,) = (button for button in buttons(lab) if button.description == label)
    assert not button.disabled
    button.click()


def message(lab: TrainingLab) -> str:
    (said,) = (
        w.value for w in inside(lab) if isinstance(w, widgets.HTML) and "<style" not in w.value
    )
    return said


def setting(settings: Any, path: str) -> Any:
    for name in path.split("."):
        settings = getattr(settings, name)
    return settings


class Ear:
    """Waits for a state of the lab's run; what came before it came to the lab as well."""

    def __init__(self, lab: TrainingLab) -> None:
        self._news = threading.Condition()
        self._newest = Snapshot()
        lab.run.follow(self)

    def due(self) -> bool:
        return True

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        with self._news:
            self._newest = snapshot
            self._news.notify_all()

    def until(self, state: str, step: int = 0) -> None:
        def wanted() -> bool:
            return self._newest.state == state and self._newest.step >= step

        with self._news:
            assert self._news.wait_for(wanted, WAIT), self._newest


# -- knobs ----------------------------------------------------------------------------------------


def test_the_table_of_moves_is_whole(opened: Any) -> None:
    assert set(knobs(opened())) == set(MOVES)


@pytest.mark.parametrize("label", MOVES)
def test_every_knob_moves_its_setting_and_no_other(label: str, opened: Any) -> None:
    lab = opened()
    value, path = MOVES[label]
    before = lab.settings
    assert setting(before, path) != value
    knobs(lab)[label].value = value
    assert setting(lab.settings, path) == value
    owner, _, name = path.rpartition(".")
    whole = {owner: setting(before, owner)} if owner else {path: setting(before, path)}
    assert lab.settings.replace(**whole) == before
    assert lab.run.settings is lab.settings
    assert name


def test_settings_move_all_knobs(opened: Any) -> None:
    lab = opened()
    wanted = Run()
    for value, path in MOVES.values():
        owner, _, name = path.rpartition(".")
        wanted = wanted.replace(**({owner: {name: value}} if owner else {name: value}))
    lab.settings = wanted
    assert {label: knob.value for label, knob in knobs(lab).items()} == {
        label: value for label, (value, _) in MOVES.items()
    }
    assert lab.settings == wanted


@pytest.mark.parametrize(
    "settings",
    [
        Run(learning_rate=0.0123),
        Run(batch_size=1000, epochs=5000),
        Run(network=Network("mlp", 4096, 100)),
        Run(optimizer=Optimizer(momentum=0.123456789)),
        Run(seed=Seed(2**32 - 1)),
    ],
)
def test_settings_off_the_places_are_kept_exactly(settings: Run, opened: Any) -> None:
    moved = opened()
    moved.settings = settings
    for lab in (opened(settings), moved):
        assert lab.settings == settings
        for label, (_, path) in MOVES.items():
            assert knobs(lab)[label].value == setting(settings, path)


def test_settings_that_are_none_leave_the_last_good_ones(opened: Any) -> None:
    lab = opened(RUN)
    with pytest.raises(SettingError, match="settings must be"):
        lab.settings = "digits"
    assert lab.settings == RUN


@given(st.lists(st.tuples(st.sampled_from([*MOVES]), st.integers(0, 2**33)), max_size=12))
@hypothesis_settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_moves_leave_valid_settings(opened: Any, moves: list[tuple[str, int]]) -> None:
    lab = opened()
    for label, number in moves:
        knob = knobs(lab)[label]
        if hasattr(knob, "options"):
            places = [p[1] if isinstance(p, tuple) else p for p in knob.options]
            knob.value = places[number % len(places)]
        else:
            knob.value = min(max(knob.min, number), knob.max)
    assert Run.from_json(lab.settings.to_json()) == lab.settings
    assert message(lab) == ""
    lab.close()


# -- buttons and states ---------------------------------------------------------------------------


def test_buttons_follow_the_state(opened: Any) -> None:
    lab = opened(RUN.replace(epochs=10_000))
    ear = Ear(lab)
    assert labels(lab) == ["Train", "Step"]
    press(lab, "Train")
    ear.until("running", step=1)
    assert labels(lab) == ["Pause", "Stop"]
    press(lab, "Pause")
    ear.until("paused")
    assert labels(lab) == ["Go on", "Step", "Stop"]
    press(lab, "Step")
    lab.run.wait(WAIT)
    assert labels(lab) == ["Go on", "Step", "Stop"]
    press(lab, "Stop")
    ear.until("stopped")
    assert labels(lab) == ["Train", "Step"]


def test_only_the_learning_rate_moves_while_it_trains(opened: Any) -> None:
    lab = opened(RUN.replace(epochs=10_000))
    ear = Ear(lab)
    press(lab, "Train")
    ear.until("running", step=1)
    assert [label for label, knob in knobs(lab).items() if not knob.disabled] == ["learning rate"]
    knobs(lab)["learning rate"].value = 0.2
    assert lab.run.settings.learning_rate == 0.2
    press(lab, "Pause")
    ear.until("paused")
    assert not any(knob.disabled for knob in knobs(lab).values())


def test_a_move_that_is_refused_is_taken_back_and_said(opened: Any) -> None:
    lab = opened(RUN.replace(epochs=10_000))
    ear = Ear(lab)
    press(lab, "Train")
    ear.until("running", step=1)
    knobs(lab)["batch size"].value = 64  # as if it had been moved just before it was disabled
    assert knobs(lab)["batch size"].value == lab.settings.batch_size == 32
    assert 'role="alert"' in message(lab)
    assert "stop it first." in message(lab)
    with pytest.raises(RunError):
        lab.settings = RUN
    assert lab.settings.epochs == 10_000


def test_a_run_that_fails_is_said_in_the_lab(opened: Any) -> None:
    lab = opened(RUN.replace(network={"kind": "cnn"}))
    ear = Ear(lab)
    press(lab, "Train")
    ear.until("failed")
    assert 'role="alert"' in message(lab)
    assert "A CNN needs images" in message(lab)
    assert labels(lab) == ["Train", "Step"]
    knobs(lab)["network"].value = "mlp"
    assert message(lab) == ""
    press(lab, "Step")
    ear.until("paused", step=1)


def test_what_an_exception_says_is_no_html(opened: Any) -> None:
    class Rude(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("<script>alert(1)</script>")

    lab = opened(RUN, models={"pytorch": Rude()}, data=(X, Y))
    ear = Ear(lab)
    press(lab, "Train")
    ear.until("failed")
    assert "&lt;script&gt;" in message(lab)
    assert "<script>" not in message(lab)


# -- models and data of your own ------------------------------------------------------------------

NETWORK = {"network", "width", "depth", "activation", "initializer", "gain"}


@pytest.mark.parametrize(
    ("models", "data", "hidden"),
    [
        (True, True, {*NETWORK, "data", "frameworks"}),
        (True, False, {*NETWORK, "frameworks"}),
        (False, True, {"data"}),
    ],
)
def test_what_you_bring_has_no_knob(
    models: bool, data: bool, hidden: set[str], opened: Any
) -> None:
    own: dict[str, Any] = {"models": {"pytorch": nn.Linear(5, 3)}} if models else {}
    own |= {"data": (X, Y)} if data else {}
    assert set(knobs(opened(RUN, **own))) == set(MOVES) - hidden


def test_your_own_model_and_data_train_in_the_lab(opened: Any) -> None:
    model = nn.Linear(5, 3)
    lab = opened(RUN.replace(epochs=1), models={"pytorch": model}, data=(X, Y))
    ear = Ear(lab)
    press(lab, "Train")
    ear.until("finished")
    assert lab.run.models["pytorch"] is model


# -- cells and closing ----------------------------------------------------------------------------


def run_cell(monkeypatch: pytest.MonkeyPatch, cell: str, count: int) -> None:
    """Pretend that a cell of a notebook is running, for the count-th time in this kernel."""
    shell = SimpleNamespace(
        get_parent=lambda: {"metadata": {"cellId": cell}} if cell else {}, execution_count=count
    )
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)


def test_a_cell_that_runs_again_closes_its_old_labs(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cell(monkeypatch, "first", 1)
    one, two = opened(RUN.replace(epochs=10_000)), opened(RUN)
    ear = Ear(one)
    press(one, "Train")
    ear.until("running", step=1)
    run_cell(monkeypatch, "second", 2)
    other = opened(RUN)
    assert one.comm is not None
    run_cell(monkeypatch, "first", 3)
    new = opened(RUN)
    ear.until("stopped")
    assert [lab.comm is None for lab in (one, two, other, new)] == [True, True, False, False]


def test_where_cells_have_no_name_nothing_is_closed(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cell(monkeypatch, "", 1)
    one = opened(RUN)
    run_cell(monkeypatch, "", 2)
    opened(RUN)
    assert one.comm is not None


def test_closing_ends_the_run(opened: Any) -> None:
    lab = opened(RUN.replace(epochs=10_000))
    ear = Ear(lab)
    press(lab, "Train")
    ear.until("running", step=1)
    lab.close()
    assert lab.run.wait(WAIT).state == "stopped"
    lab.close()  # again: nothing


def test_the_lab_is_one_line_of_a_notebook() -> None:
    lab = dlplay.labs.training()
    assert "application/vnd.jupyter.widget-view+json" in lab._repr_mimebundle_()
    lab.close()
