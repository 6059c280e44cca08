"""The views without a browser: frames, decimation, pacing, colours, words."""

import dataclasses
import json
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import view_snapshots as made

from dlplay.runs.snapshot import Curve, Snapshot
from dlplay.views import TrainingView
from dlplay.views.decimation import POINTS, Decimator
from dlplay.views.frame import Composer, compose
from dlplay.views.pacing import BEHIND, SLOW, Pacer
from dlplay.views.palette import PALETTE, contrast, style
from dlplay.views.words import describe


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def floats(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<f4")


def series(frame: tuple[dict, bytes], wing: int, name: str) -> dict[str, np.ndarray]:
    """A series as the page reads it."""
    place = frame[0]["wings"][wing]["series"][name]
    names = ["x", "y", "low", "high"] if place["band"] else ["x", "y"]
    starts = [place["at"] + i * place["n"] for i in range(len(names))]
    parts = [floats(frame[1])[start : start + place["n"]] for start in starts]
    return dict(zip(names, parts, strict=True))


# ------------------------------------------------------------------------ decimation


@pytest.mark.parametrize("length", [1, 2, 297, 298, 299, 594, 595, 1000, 4096, 100_000])
def test_points_are_few_and_hold_first_last_and_extremes(length: int) -> None:
    values = np.random.default_rng(length).normal(size=length)
    points = Decimator().update(values)
    assert len(points.mean) <= POINTS
    assert points.mean[[0, -1]].tolist() == values[[0, -1]].tolist()
    assert points.index[[0, -1]].tolist() == [0, length - 1]
    assert (points.low.min(), points.high.max()) == (values.min(), values.max())
    assert (np.diff(points.index) >= 0).all()


def test_growing_by_pieces_equals_all_at_once() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=5000)
    growing = Decimator()
    length = 0
    while length < len(values):
        length = min(len(values), length + int(rng.integers(0, 40)))
        points = growing.update(values[:length])
    for name, value in dataclasses.asdict(Decimator().update(values)).items():
        np.testing.assert_allclose(getattr(points, name), value, rtol=1e-12, err_msg=name)


def test_a_spike_shows_in_the_band() -> None:
    values = np.ones(50_000)
    values[31_415] = 77.0
    assert Decimator().update(values).high.max() == 77.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 123, 9_999])
def test_a_value_that_is_not_finite_breaks_the_line_there(value: float, at: int) -> None:
    values = np.ones(10_000)
    values[at] = value
    points = Decimator().update(values)
    assert points.bad == at
    broken = np.isnan(points.mean)
    assert 1 <= broken.sum() <= 2
    assert abs(points.index[broken] - at).min() <= 32
    assert np.nanmax(points.high) == 1.0


def test_another_series_starts_afresh() -> None:
    decimator = Decimator()
    decimator.update(np.full(1000, 5.0))
    assert decimator.update(np.full(2000, 6.0)).mean.max() == 6.0
    points = decimator.update(np.arange(10.0))
    assert points.mean.tolist() == list(range(10))


def test_an_empty_series_has_no_points() -> None:
    points = Decimator().update(np.empty(0))
    assert len(points.index) == len(points.mean) == 0
    assert points.bad == -1


# ------------------------------------------------------------------------ frames


def test_a_frame_holds_what_the_snapshot_holds() -> None:
    snapshot = made.snapshot(200)
    header, data = frame = compose(snapshot)
    json.dumps(header, allow_nan=False)
    assert [wing["title"] for wing in header["wings"]] == ["PyTorch", "Keras"]
    loss = series(frame, 1, "loss")
    np.testing.assert_allclose(loss["y"], snapshot.curves["keras"].loss, rtol=1e-6)
    np.testing.assert_array_equal(loss["x"], np.arange(200))
    tests = series(frame, 0, "test_accuracy")
    np.testing.assert_array_equal(tests["x"], snapshot.curves["pytorch"].test_steps)
    assert len(data) % 4 == 0


def test_layers_stand_side_by_side_where_the_wings_have_as_many() -> None:
    snapshot = made.snapshot(50)
    header, data = compose(snapshot)
    assert [[cell["layer"] for cell in row] for row in header["rows"]][1] == [
        "relu1",
        "keras_relu1",
    ]
    at, bins = header["rows"][1][1]["gradient"]
    look = snapshot.curves["keras"].summaries[3]
    numbers = floats(data)[at : at + 5]
    wanted = [look.low, look.high, look.mean, look.std, look.zeros]
    np.testing.assert_allclose(numbers, wanted, rtol=1e-6)
    np.testing.assert_array_equal(floats(data)[at + 5 : at + 5 + bins], look.counts)


def test_layers_stand_alone_where_the_wings_differ_in_number() -> None:
    curves = {"pytorch": made.curve(50), "keras": made.curve(50, 1, ("a", "relu"))}
    header, _ = compose(made.snapshot(50, curves=curves))
    assert [len(row) for row in header["rows"]] == [1] * 8
    assert [row[0]["title"] for row in header["rows"]] == ["PyTorch"] * 6 + ["Keras"] * 2


def test_one_wing_keeps_its_colour() -> None:
    header, _ = compose(made.snapshot(50, curves={"keras": made.curve(50)}))
    assert header["wings"][0]["style"] == style("keras") == 1


def test_a_wing_that_nobody_knows_is_drawn_too() -> None:
    header, _ = compose(made.snapshot(50, curves={"jax": made.curve(50)}))
    assert (header["wings"][0]["title"], header["wings"][0]["style"]) == ("jax", 2)


def test_a_layer_without_gradients() -> None:
    whole = made.curve(50)
    looks = tuple(look for look in whole.summaries if look.what == "activation")
    curves = {"pytorch": dataclasses.replace(whole, summaries=looks)}
    header, _ = compose(made.snapshot(50, curves=curves))
    assert header["rows"][0][0]["gradient"] is None


def test_numbers_that_json_cannot_say_stay_out_of_the_header() -> None:
    loss = np.array([1.0, np.nan, np.inf, 1e300])
    tests = np.array([2, 4])
    curve = Curve(loss, loss, tests, np.array([np.inf, 1.0]), np.array([0.5, np.nan]), np.nan)
    snapshot = Snapshot("failed", 4, 4, curves={"keras": curve}, learning_rate=np.inf)
    header, _ = frame = compose(snapshot)
    json.dumps(header, allow_nan=False)
    placed = header["wings"][0]["series"]
    assert placed["loss"]["bad"] == [1, "NaN"]
    assert placed["test_loss"]["bad"] == [2, "infinite"]
    assert placed["test_accuracy"]["bad"] == [4, "NaN"]
    assert np.isnan(series(frame, 0, "loss")["y"][1:3]).all()


def test_an_empty_snapshot() -> None:
    header, data = compose(Snapshot())
    assert (header["wings"], header["rows"], data) == ([], [], b"")
    assert header["words"] == "Training ready to start."


# ------------------------------------------------------------------------ pacing


def test_frames_come_at_the_wanted_rate() -> None:
    clock = Clock()
    pacer = Pacer(20, clock)
    sent = 0
    for _ in range(1000):
        clock.now += 0.01
        if pacer.due():
            pacer.paint(pacer.send())
            sent += 1
    assert 195 <= sent <= 201


def test_a_browser_that_is_behind_gets_fewer_frames_but_never_none() -> None:
    clock = Clock()
    pacer = Pacer(20, clock)
    times = []
    for _ in range(1000):
        clock.now += 0.01
        if pacer.due():
            pacer.send()
            times.append(clock.now)
    gaps = np.diff(times)
    assert gaps[: BEHIND - 1].max() < 0.07
    assert gaps[-5:] == pytest.approx([SLOW] * 5, abs=0.02)
    pacer.paint(pacer.sent)
    clock.now += 0.06
    assert pacer.due()


# ------------------------------------------------------------------------ the widget


def test_show_sends_when_due_when_forced_and_at_a_new_state() -> None:
    view = TrainingView(rate=0.01)
    view.show(made.snapshot(10))
    assert view.header["step"] == 10
    assert not view.due()
    view.show(made.snapshot(11))
    assert view.header["step"] == 10
    view.show(made.snapshot(12, "paused"))
    assert (view.header["step"], view.header["state"]) == (12, "paused")
    view.show(made.snapshot(13, "paused"), force=True)
    assert view.header["step"] == 13
    assert view.header["frame"] == 3


def test_the_page_reports_what_it_has_painted() -> None:
    view = TrainingView()
    view._handle_custom_msg({"kind": "painted", "frame": 3, "frames": 2, "latency": 0.02}, [])
    assert (view.painted.frame, view.painted.frames, view.painted.latency) == (3, 2, 0.02)
    view._handle_custom_msg({"kind": "other"}, [])
    view._handle_custom_msg("nonsense", [])
    assert view.painted.frame == 3


def test_threads_may_show_while_the_page_changes_a_knob() -> None:
    view = TrainingView(rate=1e6)
    pieces = [made.snapshot(step) for step in range(1, 40)]
    done = threading.Event()

    def train() -> None:
        for _ in range(10):
            for piece in pieces:
                view.show(piece, force=True)
        done.set()

    thread = threading.Thread(target=train)
    thread.start()
    while not done.is_set():
        view.set_state({"log_loss": not view.log_loss})
    thread.join()
    assert view.header["frame"] == 390


def test_without_widgets_there_are_words() -> None:
    view = TrainingView()
    view.show(made.snapshot(100))
    data, _ = view._repr_mimebundle_()
    assert data["text/plain"].startswith("Training running, step 100 of 900; PyTorch: loss ")
    assert "\n" not in data["text/plain"]


def test_a_closed_view_takes_snapshots_quietly() -> None:
    view = TrainingView()
    view.close()
    view.show(made.snapshot(5), force=True)


def test_words_for_a_run_that_failed() -> None:
    curve = dataclasses.replace(made.curve(3), loss=np.array([1.0, np.inf, np.nan]))
    said = describe(made.snapshot(3, "failed", curves={"keras": curve}, message="Out of\nmemory."))
    assert said.startswith("Training failed, step 3 of 900; Keras: loss not a number,")
    assert said.endswith("; Out of memory.")


def test_cost_does_not_grow_with_the_run() -> None:
    def cost(steps: int) -> float:
        curves = {"pytorch": made.curve(steps, 0), "keras": made.curve(steps, 1)}
        snapshot = made.snapshot(steps, curves=curves)
        composer = Composer()
        composer.compose(snapshot)
        times = []
        for _ in range(30):
            start = time.perf_counter()
            composer.compose(snapshot)
            times.append(time.perf_counter() - start)
        return min(times)

    assert cost(100_000) < 2 * cost(1_000) + 5e-4


# ------------------------------------------------------------------------ colours, imports


@pytest.mark.parametrize(
    ("theme", "background"),
    [("light", "#ffffff"), ("light", "#f5f5f5"), ("dark", "#111111"), ("dark", "#212121")],
)
def test_lines_stand_out_from_the_background(theme: str, background: str) -> None:
    assert min(contrast(colour, background) for colour in PALETTE[theme]) >= 3.0


def test_contrast_is_the_one_that_wcag_defines() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_the_module_is_one_text_without_imports() -> None:
    lines = TrainingView._esm.splitlines()
    assert not [line for line in lines if line.startswith("import ")]
    assert [line for line in lines if line.startswith("export ")] == ["export default { render };"]


def test_views_import_no_framework() -> None:
    code = "import sys, dlplay.views; print({'torch', 'tensorflow', 'keras'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"
