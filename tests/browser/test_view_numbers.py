"""The arithmetic that the page does itself: ticks, bins and numbers as text."""

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dlplay.views.web as web

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SOURCE = Path(web.__file__).with_name("numbers.js").read_text(encoding="utf-8")
MODULE = "data:text/javascript;base64," + base64.b64encode(SOURCE.encode()).decode()


@pytest.fixture(scope="module")
def numbers(chromium: "Browser") -> Any:
    """Evaluates an expression in which ``m`` is the module."""
    page = chromium.new_page()
    yield lambda expression: page.evaluate(
        f"async address => {{ const m = await import(address); return {expression}; }}", MODULE
    )
    page.close()


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("m.ticks(0, 2.5, 5)", [0, 0.5, 1, 1.5, 2, 2.5]),
        ("m.ticks(-3, 3, 3)", [-2, 0, 2]),
        ("m.logTicks(0.009, 1200, 10)", [0.01, 0.1, 1, 10, 100, 1000]),
        ("m.roundUp(0.3)", 0.5),
        ("m.roundUp(1)", 1),
        ("m.tickLabels([4.9998, 5, 5.0002])", ["4.9998", "5.0000", "5.0002"]),
        ("m.tickLabels([0, 50, 100])", ["0", "50", "100"]),
        ("m.tickLabels([])", []),
        ("[0, 1.23456, -0.00012, 123456, NaN].map(m.text)",
         ["0", "1.23", "\u22121.2e\u22124", "1.2e5", "NaN"]),
        ("m.percent(0.9725)", "97.3\u2009%"),
    ],
)  # fmt: skip
def test_numbers(numbers: Any, expression: str, wanted: Any) -> None:
    assert numbers(expression) == wanted


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.0, 1.0, [0.25, 0.25, 0.25, 0.25]),  # its own bins
        (0.0, 2.0, [0.5, 0.5, 0, 0]),  # wider ones
        (-0.25, 1.75, [0.25, 0.5, 0.25, 0]),  # across edges
    ],
)
def test_new_bins_hold_the_same_mass(
    numbers: Any, low: float, high: float, wanted: list[float]
) -> None:
    own = "{ low: 0, high: 1, shares: [0.25, 0.25, 0.25, 0.25] }"
    assert numbers(f"[...m.rebin({own}, {low}, {high}, 4)]") == pytest.approx(wanted)


@pytest.mark.parametrize("at", [0.0, 0.999, 1.0])
def test_a_histogram_without_width_is_one_bar(numbers: Any, at: float) -> None:
    own = f"{{ low: {at}, high: {at}, shares: [0.5, 0.5] }}"
    shares = numbers(f"[...m.rebin({own}, 0, 1, 4)]")
    assert sorted(shares) == [0, 0, 0, 1]


def test_smoothing_breaks_where_a_value_is_missing(numbers: Any) -> None:
    smoothed = numbers("[...m.smooth(new Float32Array(200).fill(3).fill(NaN, 100, 101))]")
    assert [i for i, value in enumerate(smoothed) if value != value] == [100]
    assert smoothed[99] == smoothed[101] == 3
