"""Settings: what is valid goes to JSON and back; what is not gets one sentence."""

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dlplay import settings
from dlplay.errors import SettingError
from dlplay.settings import Network, Optimizer, Run, Schedule, Seed
from dlplay.settings.fields import Choice, Choices, Flag, Number, Part, Rule, Setting

KINDS = [
    getattr(settings, name) for name in settings.__all__ if name not in ("DATASETS", "Setting")
]


def values(rule: Rule) -> st.SearchStrategy[Any]:
    """All that a rule accepts."""
    match rule:
        case Choice():
            return st.sampled_from(rule.options)
        case Choices():
            return st.lists(st.sampled_from(rule.options), min_size=1)
        case Flag():
            return st.booleans()
        case Part():
            return valid(rule.kind)
        case Number(whole=True):
            return st.integers(int(rule.low), int(rule.high))
        case Number():
            high = rule.high if math.isfinite(rule.high) else None
            floats = st.floats(rule.low, high, allow_nan=False, allow_infinity=False)
            return floats.filter(
                lambda x: not (rule.above and x == rule.low) and not (rule.below and x == rule.high)
            )
    raise AssertionError(rule)


@st.composite
def valid(draw: st.DrawFn, kind: type[Setting]) -> Setting:
    """Any valid settings of a kind."""
    fields = {
        field.name: draw(values(field.metadata["rule"])) for field in dataclasses.fields(kind)
    }
    assume(not (fields.get("nesterov") and fields.get("dampening")))  # the one rule for two fields
    return kind(**fields)


def refused(make: Any, *arguments: Any, **named: Any) -> str:
    """The sentence with which something is refused: one line that ends with a period."""
    with pytest.raises(SettingError) as error:
        make(*arguments, **named)
    said = str(error.value)
    assert "\n" not in said
    assert said.endswith(".")
    assert len(said) < 500
    return said


# -- there and back -------------------------------------------------------------------------------


@given(st.sampled_from(KINDS).flatmap(valid))
def test_json_gives_the_same_object_back(given: Setting) -> None:
    again = type(given).from_json(given.to_json())
    assert again == given
    assert hash(again) == hash(given)
    assert type(given).from_dict(given.to_dict()) == given
    assert given.replace() == given


@given(valid(Run), valid(Run))
def test_replacing_all_fields_gives_the_other(one: Run, other: Run) -> None:
    fields = {field.name: getattr(other, field.name) for field in dataclasses.fields(Run)}
    assert one.replace(**fields) == other
    assert one.replace(**other.to_dict()) == other


def test_a_repr_is_the_code_that_makes_it() -> None:
    run = Run(network=Network("mlp", width=3), optimizer=Optimizer("adam"), epochs=2)
    assert eval(repr(run), vars(settings)) == run


def test_a_dict_changes_some_fields_of_a_part() -> None:
    run = Run(network=Network("mlp", depth=5))
    assert run.replace(network={"width": 8}).network == Network("mlp", width=8, depth=5)


def test_wings_keep_one_order() -> None:
    assert Run(wings=["keras", "pytorch", "keras"]).wings == ("pytorch", "keras")


def test_a_file_gives_the_same_settings_back(tmp_path: Path) -> None:
    run = Run(learning_rate=0.1, seed=Seed(5))
    run.save(tmp_path / "run.json")
    assert Run.load(tmp_path / "run.json") == run


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("batch_size", np.int64(7), int),
        ("learning_rate", np.float32(0.5), float),
        ("learning_rate", np.float64(0.5), float),
        ("learning_rate", 1, float),
        ("learning_rate", Fraction(1, 3), float),
        ("data", np.str_("moons"), str),
    ],
)
def test_numbers_of_other_kinds_become_python_numbers(name: str, value: Any, kind: type) -> None:
    run = Run(**{name: value})
    assert type(getattr(run, name)) in (kind, np.str_)
    assert Run.from_json(run.to_json()) == run


# -- what is refused ------------------------------------------------------------------------------


class Awkward:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


NONSENSE = [
    None,
    "",
    "much",
    b"cnn",
    -1,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    10**5000,
    1 + 1j,
    [],
    {},
    object(),
    Run,
    np.array([1, 2]),
    np.array(["a"] * 100),
    "line\nbreak" * 100,
    Awkward(),
]
FIELDS = [(kind, field.name) for kind in KINDS for field in dataclasses.fields(kind)]


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda x: getattr(x, "__name__", x))
def test_every_field_refuses_nonsense_in_one_sentence(kind: type[Setting], name: str) -> None:
    for value in NONSENSE:
        if isinstance(kind.rule(name), Part) and isinstance(value, dict):
            continue  # a dict of no changes
        if isinstance(value, int) and value > 0 and kind.rule(name) == Number(0.0, math.inf):
            continue
        assert f"{kind.__name__}.{name} " in refused(kind, **{name: value})


NUMBERS = [(k, n) for k, n in FIELDS if isinstance(k.rule(n), Number)]


@pytest.mark.parametrize(("kind", "name"), NUMBERS, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.parametrize("value", [True, False, np.True_, "1", np.array(1), [1]])
def test_numbers_are_no_booleans_and_no_strings(kind: Any, name: str, value: Any) -> None:
    assert f"{kind.__name__}.{name} " in refused(kind, **{name: value})


@pytest.mark.parametrize(("kind", "name"), NUMBERS, ids=lambda x: getattr(x, "__name__", x))
def test_bounds_are_held_exactly(kind: Any, name: str) -> None:
    rule = kind.rule(name)
    step = 1 if rule.whole else None
    below = rule.low - 1 if step else math.nextafter(rule.low, -math.inf)
    edges = [rule.low] if rule.above else [below]
    if math.isfinite(rule.high):
        above = int(rule.high) + 1 if step else math.nextafter(rule.high, math.inf)
        edges.append(rule.high if rule.below else above)
        assert rule.below or getattr(kind(**{name: rule.high}), name) == rule.high
    assert rule.above or getattr(kind(**{name: rule.low}), name) == rule.low
    for edge in edges:
        refused(kind, **{name: edge})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"learning_rate": -1}, "Run.learning_rate is -1, but must be a number above 0"),
        ({"epochs": 0}, "Run.epochs is 0, but must be a whole number at least 1"),
        ({"epochs": 2.5}, "Run.epochs is 2.5, but must be a whole number"),
        ({"seed": {"value": 2**32}}, "at most 4294967295."),
        ({"data": "imagenet"}, "Run.data is 'imagenet', but must be one of: digits, "),
        ({"wings": ["jax"]}, "Run.wings is ['jax'], but must list one or more of: pytorch, keras."),
        ({"wings": "keras"}, "Run.wings is 'keras', but must list one or more of"),
        ({"wings": [np.array([1, 2])]}, "Run.wings is [array([1, 2])]"),
        ({"network": "cnn"}, "Run.network is 'cnn', but must be a settings.Network(...)."),
        ({"network": {"witdh": 3}}, "Network has no setting 'witdh': it has kind, width"),
        ({"network": {1: 3}}, "Network has no setting 1: it has kind, width"),
        ({"epoch": 3}, "Run has no setting 'epoch': it has network, data"),
    ],
)
def test_a_sentence_says_what_was_wrong_and_what_is_expected(
    changes: dict[str, Any], sentence: str
) -> None:
    assert sentence in refused(Run().replace, **changes)


def test_settings_that_do_not_go_together() -> None:
    assert "nesterov" in refused(Optimizer, nesterov=True, dampening=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_frozen(kind: type[Setting]) -> None:
    made = kind()
    for field in dataclasses.fields(kind):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, field.name, getattr(made, field.name))


NO_JSON = ["", "{", "[]", "3", '"cnn"', "null", "NaN", "[" * 100_000, "9" * 5000, None, 3]
NO_RUN = ['{"learning_rate": NaN}', '{"epochs": 1e400}', '{"network": []}', '{"seed": {"seed": 1}}']


@pytest.mark.parametrize("text", [*NO_JSON, *NO_RUN], ids=range(15))
def test_what_is_no_json_of_settings_gets_a_sentence(text: Any) -> None:
    refused(Run.from_json, text)


@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    refused(Run.from_json, text)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"{"])
def test_a_file_that_cannot_be_read_gets_a_sentence(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    refused(Run.load, tmp_path / "run.json")


def test_a_place_that_cannot_be_written_gets_a_sentence(tmp_path: Path) -> None:
    assert "cannot be saved" in refused(Run().save, tmp_path / "missing" / "run.json")
    refused(Run.load, tmp_path)
    refused(Run().save, tmp_path)


# -- networks and schedules -----------------------------------------------------------------------


@given(st.integers(1, 100), st.integers(1, 300), st.integers(1, 300))
def test_a_cnn_says_how_deep_it_may_be(depth: int, height: int, width: int) -> None:
    network = Network("cnn", depth=depth)
    deepest = int(math.log2(min(height, width)))
    if depth <= deepest:
        assert network.final_size((height, width, 1)) == (height // 2**depth, width // 2**depth)
    else:
        assert f"at most {deepest}." in refused(network.final_size, (height, width, 1))


def test_a_cnn_on_points_gets_a_sentence() -> None:
    assert "Network('mlp')" in refused(Network("cnn").final_size, (2,))


def schedules(*names: str) -> st.SearchStrategy[Schedule]:
    return st.builds(
        Schedule,
        st.sampled_from(names),
        st.floats(0, 1, exclude_max=True),
        st.floats(0, 1, exclude_min=True),
    )


SCHEDULES = schedules(*Schedule.rule("name").options)
FALLING = schedules("constant", "step", "exponential", "cosine", "linear", "polynomial")


@given(SCHEDULES, st.integers(1, 5000), st.data())
@example(Schedule("linear", final=5e-324), 2, None)
def test_a_factor_is_a_share(schedule: Schedule, steps: int, data: Any) -> None:
    step = data.draw(st.integers(0, steps)) if data else steps
    assert 0 < schedule.factor(step, steps) <= 1


@given(FALLING, st.integers(2, 500))
def test_warm_up_rises_and_the_rest_falls(schedule: Schedule, steps: int) -> None:
    factors = np.array([schedule.factor(step, steps) for step in range(steps)])
    warm = round(schedule.warmup * steps)
    assert (np.diff(factors[:warm]) > 0).all()
    assert (np.diff(factors[warm:]) <= 1e-15).all()
    if steps - warm >= 1 and warm:
        assert factors[warm - 1] == factors[warm] == 1


@given(FALLING, st.integers(2, 500))
def test_a_schedule_ends_where_it_says(schedule: Schedule, steps: int) -> None:
    assume(steps - round(schedule.warmup * steps) >= 2)
    ends = {"constant": 1.0, "step": 0.25}
    last = schedule.factor(steps - 1, steps)
    assert last == pytest.approx(ends.get(schedule.name, schedule.final))


@pytest.mark.parametrize(
    ("name", "middle"), [("linear", 0.505), ("cosine", 0.505), ("exponential", 0.1), ("step", 0.5)]
)
def test_the_middle_of_each_schedule(name: str, middle: float) -> None:
    assert Schedule(name).factor(50, 101) == pytest.approx(middle)
