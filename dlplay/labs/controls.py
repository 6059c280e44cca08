"""Widgets for settings: each field's own rule says which widget it takes and what it offers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import ipywidgets as widgets

from dlplay.errors import DlplayError
from dlplay.settings import Setting
from dlplay.settings.fields import Choice, Choices, Flag, Number

_WIDE = {"description_width": "8.5em"}


@dataclass(frozen=True)
class Knob:
    """One control of a lab.

    Attributes
    ----------
    path : str
        Of the setting: ``"learning_rate"``, ``"network.width"``.
    label : str
        What the reader sees.
    values : range or tuple of float, optional
        The places of a slider, inside the rule's own bounds; without them a number gets a text
        field. A setting that lies between them gets a place of its own: a slider of ipywidgets
        with a fixed step would move it to the next place as soon as the browser draws it.
    """

    path: str
    label: str
    values: range | tuple[float, ...] = ()


class Controls:
    """The widgets of some knobs, kept equal to one settings object.

    Parameters
    ----------
    settings : Setting
        Where the widgets start.
    knobs : tuple of Knob
    change : callable
        Called with a new settings object when a widget was moved. It may refuse by raising: the
        caller shows why, and calls ``show`` with what is valid.
    refuse : callable
        Called with the error where the settings themselves refuse a value.
    """

    def __init__(
        self,
        settings: Setting,
        knobs: tuple[Knob, ...],
        change: Callable[[Any], None],
        refuse: Callable[[Exception], None],
    ) -> None:
        self._settings, self._change, self._refuse = settings, change, refuse
        self._showing = False
        self.widgets = {knob.path: _widget(settings, knob) for knob in knobs}
        for path, widget in self.widgets.items():
            widget.observe(lambda event, path=path: self._moved(path, event["new"]), "value")

    def show(self, settings: Any) -> None:
        """Move all widgets to these settings, without a change being reported."""
        self._settings, self._showing = settings, True
        try:
            for path, widget in self.widgets.items():
                value = _get(settings, path)
                if isinstance(widget, widgets.SelectionSlider):
                    widget.options = _places([place for _, place in widget.options], value)
                elif isinstance(widget, widgets.IntSlider):
                    widget.max = max(widget.max, value)
                widget.value = value
        finally:
            self._showing = False

    def enable(self, enabled: bool, always: tuple[str, ...] = ()) -> None:
        """Let the widgets be moved, or not; those of ``always`` can be moved at all times."""
        for path, widget in self.widgets.items():
            widget.disabled = not (enabled or path in always)

    def _moved(self, path: str, value: Any) -> None:
        if self._showing:
            return
        try:
            self._change(_set(self._settings, path, value))
        except DlplayError as error:
            self._refuse(error)
            self.show(self._settings)


def _get(settings: Any, path: str) -> Any:
    for name in path.split("."):
        settings = getattr(settings, name)
    return settings


def _set(settings: Any, path: str, value: Any) -> Any:
    name, _, rest = path.partition(".")
    inner = _set(getattr(settings, name), rest, value) if rest else value
    return settings.replace(**{name: inner})


def _widget(settings: Setting, knob: Knob) -> widgets.ValueWidget:
    owner, _, name = knob.path.rpartition(".")
    rule = type(_get(settings, owner) if owner else settings).rule(name)
    shared = {"description": knob.label, "style": _WIDE, "value": _get(settings, knob.path)}
    match rule:
        case Choice():
            return widgets.Dropdown(options=rule.options, **shared)
        case Choices():
            return widgets.Dropdown(options=_subsets(rule.options), **shared)
        case Flag():
            return widgets.Checkbox(**shared)
        case Number():
            return _number(rule, knob, shared)
    raise TypeError(f"{knob.path} has no widget: its rule is {rule!r}.")


def _subsets(options: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """All that can be chosen from some options, the largest first: (label, value)."""
    sizes = range(len(options), 0, -1)
    return [(" and ".join(some), some) for size in sizes for some in combinations(options, size)]


def _number(rule: Number, knob: Knob, shared: dict[str, Any]) -> widgets.ValueWidget:
    if isinstance(knob.values, range):
        highest = max(knob.values[-1], shared["value"])
        return widgets.IntSlider(min=knob.values[0], max=highest, **shared)
    if knob.values:
        places = _places(knob.values, shared["value"])
        return widgets.SelectionSlider(options=places, **shared)
    kind = widgets.BoundedIntText if rule.whole else widgets.BoundedFloatText
    return kind(min=rule.low, max=min(rule.high, 2**53), **shared)


def _places(values: Iterable[float], value: float) -> list[tuple[str, float]]:
    """A slider's places in order, with one for ``value``: (label, value)."""
    return [(f"{place:g}", place) for place in sorted({*values, value})]
