"""Fields that check themselves: each states in its metadata what it accepts.

A lab reads the same metadata to choose a widget, so a knob can only offer what is valid.
"""

import dataclasses
import json
import math
from collections.abc import Collection
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

from dlplay.errors import SettingError


def told(value: Any) -> str:
    """A value as a message shows it: on one line, not too long, whatever its repr does."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a repr may fail in any way; whole numbers of 5,000 digits have none
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a field accepts: ``clean(where, value)`` returns the value or raises SettingError."""

    def clean(self, where: str, value: Any) -> Any:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Choice(Rule):
    options: tuple[str, ...]

    def clean(self, where: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.options:
            raise SettingError(
                f"{where} is {told(value)}, but must be one of: {', '.join(self.options)}."
            )
        return value


@dataclasses.dataclass(frozen=True)
class Choices(Rule):
    options: tuple[str, ...]

    def clean(self, where: str, value: Any) -> tuple[str, ...]:
        listed = isinstance(value, Collection) and not isinstance(value, str)
        given = list(value) if listed else []
        if not given or any(not isinstance(i, str) or i not in self.options for i in given):
            raise SettingError(
                f"{where} is {told(value)}, but must list one or more of:"
                f" {', '.join(self.options)}."
            )
        return tuple(option for option in self.options if option in given)


@dataclasses.dataclass(frozen=True)
class Number(Rule):
    low: float
    high: float
    whole: bool = False
    above: bool = False  # low itself is not allowed
    below: bool = False  # high itself is not allowed

    def clean(self, where: str, value: Any) -> int | float:
        kind: Any = Integral if self.whole else Real
        if isinstance(value, bool) or not isinstance(value, kind) or not self._holds(value):
            raise SettingError(f"{where} is {told(value)}, but must be {self}.")
        return int(value) if self.whole else float(value)

    def _holds(self, value: Any) -> bool:
        low = value > self.low if self.above else value >= self.low
        high = value < self.high if self.below else value <= self.high
        try:
            return bool(low and high and math.isfinite(value))
        except OverflowError:  # a whole number that is too large to become a float
            return False

    def __str__(self) -> str:
        low = f"{'above' if self.above else 'at least'} {_plain(self.low)}"
        high = f" and {'below' if self.below else 'at most'} {_plain(self.high)}"
        bounds = low + (high if math.isfinite(self.high) else "")
        return f"a {'whole ' if self.whole else ''}number {bounds}"


def _plain(bound: float) -> str:
    """A bound as a person writes it: 4294967295, not 4.29497e+09."""
    return str(int(bound)) if math.isfinite(bound) and bound == int(bound) else f"{bound:g}"


@dataclasses.dataclass(frozen=True)
class Flag(Rule):
    def clean(self, where: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise SettingError(f"{where} is {told(value)}, but must be True or False.")
        return value


@dataclasses.dataclass(frozen=True)
class Part(Rule):
    kind: type

    def clean(self, where: str, value: Any) -> Any:
        if not isinstance(value, self.kind):
            name = self.kind.__name__
            raise SettingError(f"{where} is {told(value)}, but must be a settings.{name}(...).")
        return value


def _field(rule: Rule, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={"rule": rule})


def choice(default: str, *others: str) -> Any:
    """One of some names; the first is the default."""
    return _field(Choice((default, *others)), default)


def choices(*options: str) -> Any:
    """One or more of some names, kept in this order; all of them are the default."""
    return _field(Choices(options), options)


def number(default: float, low: float = 0.0, high: float = math.inf, **bounds: bool) -> Any:
    """A finite number; ``above=True`` and ``below=True`` leave the bounds themselves out."""
    return _field(Number(low, high, **bounds), default)


def whole(default: int, low: int = 0, high: float = 2**53) -> Any:
    """A whole number from ``low`` to ``high``; JSON and browsers are exact up to 2**53."""
    return _field(Number(low, high, whole=True), default)


def flag(default: bool) -> Any:
    """True or False."""
    return _field(Flag(), default)


def part(kind: type) -> Any:
    """Another settings object."""
    return dataclasses.field(default_factory=kind, metadata={"rule": Part(kind)})


class Setting:
    """Base of every settings dataclass: frozen, validated, and JSON both ways."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            where = f"{type(self).__name__}.{field.name}"
            value = field.metadata["rule"].clean(where, getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    @classmethod
    def rule(cls, name: str) -> Any:
        """The rule of one field, by its name: what a lab needs to build a widget."""
        return cls.__dataclass_fields__[name].metadata["rule"]  # type: ignore[attr-defined]

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; raises SettingError where the change is not valid.

        A dict changes some fields of a part: ``run.replace(network={"width": 8})``.
        """
        return self._changed(changes)

    def _changed(self, changes: dict[str, Any]) -> Self:
        fields = _fields_of(self)
        for name, value in changes.items():
            part = fields.get(name)
            nested = isinstance(part, Setting) and isinstance(value, dict)
            fields[name] = part._changed(value) if nested else value  # type: ignore[union-attr]
        return type(self).from_dict(fields)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings."""
        return json.loads(self.to_json())

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of ``to_dict``; a field left out takes its default."""
        known = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if not isinstance(values, dict):
            raise SettingError(f"{cls.__name__} is made from a dict, not from {told(values)}.")
        for name in values:
            if name not in known:
                raise SettingError(
                    f"{cls.__name__} has no setting {told(name)}: it has {', '.join(known)}."
                )
        made = {}
        for name, value in values.items():
            rule = known[name].metadata["rule"]
            nested = isinstance(rule, Part) and isinstance(value, dict)
            made[name] = rule.kind.from_dict(value) if nested else value
        return cls(**made)

    def to_json(self) -> str:
        """JSON text, which ``from_json`` gives back exactly."""
        return json.dumps(dataclasses.asdict(self), indent=2)  # type: ignore[call-overload]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote; raises SettingError for anything else."""
        try:
            values = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise SettingError(f"This is not the JSON of a {cls.__name__}: {error}.") from error
        return cls.from_dict(values)

    def save(self, path: str | Path) -> None:
        """Write the settings to a JSON file; raises SettingError where it cannot be written."""
        try:
            Path(path).write_text(self.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise SettingError(
                f"The settings cannot be saved in {str(path)!r}: {error.strerror or error}."
            ) from error

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the settings from a JSON file; raises SettingError where it cannot be read."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise SettingError(f"The settings in {str(path)!r} cannot be read: {why}.") from error
        return cls.from_json(text)


def _fields_of(setting: Any) -> dict[str, Any]:
    return {field.name: getattr(setting, field.name) for field in dataclasses.fields(setting)}
