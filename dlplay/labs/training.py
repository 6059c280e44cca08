"""The training lab: one network in both frameworks, live, with every knob beside it."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from dlplay.errors import DlplayError
from dlplay.frameworks import WINGS, installed, missing
from dlplay.labs import cells
from dlplay.labs.controls import Controls, Knob
from dlplay.runs import Snapshot, Training
from dlplay.settings import Run
from dlplay.views import TrainingView

_NETWORK = (
    Knob("data", "data"),
    Knob("network.kind", "network"),
    Knob("network.width", "width", range(1, 65)),
    Knob("network.depth", "depth", range(1, 9)),
    Knob("network.activation", "activation"),
    Knob("initializer.name", "initializer"),
    Knob("initializer.gain", "gain", (0.1, 0.2, 0.5, 1, 2, 5, 10)),
)
_TRAINING = (
    Knob("optimizer.name", "optimizer"),
    Knob("optimizer.momentum", "momentum", (0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)),
    Knob("schedule.name", "schedule"),
    Knob("schedule.warmup", "warm-up", (0, 0.05, 0.1, 0.2, 0.3, 0.5)),
    Knob("batch_size", "batch size", range(1, 257)),
    Knob("epochs", "epochs", range(1, 101)),
)
_PLACE = (
    Knob("precision.name", "precision"),
    Knob("placement.device", "device"),
    Knob("seed.value", "seed"),
    Knob("wings", "frameworks"),
)
_RATES = tuple(float(f"{digit}e{power}") for power in range(-4, 1) for digit in (1, 2, 5))
_RATE = Knob("learning_rate", "learning rate", _RATES)
_BUSY = ("preparing", "running")
_CSS = Path(__file__).with_name("training.css")


class TrainingLab(widgets.VBox):
    """Trains on the press of a button, and shows what happens inside.

    The learning rate can be turned while it trains; the other knobs act from the next start.

    Parameters
    ----------
    settings : Run, optional
        Where the knobs start.
    models, data
        Models and data of your own, as for ``dlplay.Training``; the knobs that would choose them
        are then left out.
    """

    def __init__(
        self,
        settings: Run | None = None,
        models: Mapping[str, Any] | None = None,
        data: Any = None,
    ) -> None:
        super().__init__()  # first: ipywidgets complains about a widget that was never whole
        here = tuple(wing for wing in WINGS if installed(wing))
        self.run = Training(settings or Run(wings=here or WINGS), models, data)
        self.view = TrainingView()
        knobs = _knobs(own_models=bool(models), own_data=data is not None)
        self._controls = Controls(self.run.settings, sum(knobs, (_RATE,)), self._turn, self._refuse)
        self._buttons = self._make_buttons()
        self._message = widgets.HTML()
        self.children = self._layout(knobs)
        self.add_class("dlplay-lab")
        self.run.follow(self.view)
        self.run.follow(_States(self))
        cells.replace(self)
        if settings is None and not models and len(here) < len(WINGS):
            self._say(missing(*(set(WINGS) - set(here))))

    @property
    def settings(self) -> Run:
        """What the knobs say; setting it moves them.

        Raises RunError where more than the learning rate changes while the run trains.
        """
        return self.run.settings

    @settings.setter
    def settings(self, settings: Run) -> None:
        self._turn(settings)

    def close(self) -> None:
        """Stop the run and take the lab off the page."""
        self.run.stop()
        self.view.close()
        super().close()

    def react(self, snapshot: Snapshot) -> None:
        """Make buttons, knobs and message fit a new state of the run."""
        busy = snapshot.state in _BUSY
        self._controls.enable(not busy, always=(_RATE.path,))
        train, step, stop = (self._buttons[name] for name in ("train", "step", "stop"))
        train.description = "Pause" if busy else "Go on" if snapshot.state == "paused" else "Train"
        train.icon = "pause" if busy else "play"
        step.disabled, stop.disabled = busy, not (busy or snapshot.state == "paused")
        self._say(snapshot.message, bad=snapshot.state == "failed")

    def _turn(self, settings: Run) -> None:
        self.run.settings = settings
        self._controls.show(settings)
        self._say("")

    def _refuse(self, error: Exception) -> None:
        self._say(str(error), bad=True)

    def _press(self, name: str) -> None:
        busy = self.run.state in _BUSY
        action = {"train": self.run.pause if busy else self.run.start, "step": self.run.step}
        try:
            action.get(name, self.run.stop)()
        except DlplayError as error:
            self._refuse(error)

    def _say(self, text: str, bad: bool = False) -> None:
        role, kind = ("alert", "bad") if bad else ("status", "note")
        self._message.value = (
            f'<p role="{role}" class="dlplay-message dlplay-{kind}">{escape(text)}</p>'
            if text
            else ""
        )

    def _make_buttons(self) -> dict[str, widgets.Button]:
        made = {
            "train": widgets.Button(description="Train", icon="play", button_style="primary"),
            "step": widgets.Button(description="Step", icon="step-forward"),
            "stop": widgets.Button(description="Stop", icon="stop", disabled=True),
        }
        tips = {
            "train": "Train both frameworks on the same batches; press again to pause",
            "step": "Make one step in each framework, and pause",
            "stop": "End this run; the next one starts anew",
        }
        for name, button in made.items():
            button.tooltip = tips[name]
            button.on_click(lambda _, name=name: self._press(name))
        return made

    def _layout(self, groups: tuple[tuple[Knob, ...], ...]) -> list[widgets.Widget]:
        self.view.observe(self._enlarge, "projector")
        bar = [*self._buttons.values(), self._controls.widgets[_RATE.path]]
        columns = [
            widgets.VBox([self._controls.widgets[knob.path] for knob in group]) for group in groups
        ]
        knobs = widgets.HBox(columns).add_class("dlplay-knobs")
        style = widgets.HTML(f"<style>{_CSS.read_text(encoding='utf-8')}</style>")
        return [
            style,
            widgets.HBox(bar).add_class("dlplay-bar"),
            knobs,
            self._message,
            self.view,
        ]

    def _enlarge(self, event: dict[str, Any]) -> None:
        (self.add_class if event["new"] else self.remove_class)("dlplay-projector")


class _States:
    """Tells a lab of every change of state; it never asks for a picture."""

    def __init__(self, lab: TrainingLab) -> None:
        self._lab = lab

    def due(self) -> bool:
        return False

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        self._lab.react(snapshot)


def _knobs(own_models: bool, own_data: bool) -> tuple[tuple[Knob, ...], ...]:
    network = () if own_models else _NETWORK[0 if not own_data else 1 :]
    if own_models and not own_data:
        network = _NETWORK[:1]
    place = tuple(knob for knob in _PLACE if not (own_models and knob.path == "wings"))
    return tuple(group for group in (network, _TRAINING, place) if group)


def training(
    settings: Run | None = None, models: Mapping[str, Any] | None = None, data: Any = None
) -> TrainingLab:
    """Open the training lab; see ``TrainingLab``."""
    return TrainingLab(settings, models, data)
