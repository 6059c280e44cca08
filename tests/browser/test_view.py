"""The training view in a real JupyterLab, fed from a background thread with made-up snapshots."""

import itertools
import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dlplay.views.palette import PALETTE, contrast

nbformat = pytest.importorskip("nbformat")

if TYPE_CHECKING:
    from jupyter import Notebook

TESTS = Path(__file__).parents[1]

SHOW = f"""
import sys, threading, time
sys.path.insert(0, {str(TESTS)!r})
import numpy as np
import view_snapshots as made
from dlplay.runs.snapshot import Snapshot
from dlplay.views import TrainingView
pieces = [made.snapshot(step) for step in range(1, 900, 4)]
view = TrainingView()
view
"""
FEED = """
stop = threading.Event()
costs = []

def feed(seconds=60):
    start = time.monotonic()
    count = 0
    while not stop.is_set() and time.monotonic() < start + seconds:
        if view.due():
            begin = time.perf_counter()
            view.show(pieces[count % len(pieces)])
            costs.append(time.perf_counter() - begin)
            count += 1
        stop.wait(0.005)
    view.show(made.snapshot(900, "finished"), force=True)

thread = threading.Thread(target=feed, daemon=True)
thread.start()
"""
STOP = """
stop.set()
thread.join()
print(1000 * float(np.median(costs)))
"""
# Counts the frames painted within a time, and gives the moments of each.
COUNT = """
seconds => new Promise(done => {
    const root = document.querySelector(".dlplay-training");
    const times = [];
    let last = root.dataset.frame;
    const watch = new MutationObserver(() => {
        if (root.dataset.frame !== last) times.push(performance.now());
        last = root.dataset.frame;
    });
    watch.observe(root, { attributes: true, attributeFilter: ["data-frame"] });
    setTimeout(() => { watch.disconnect(); done(times); }, 1000 * seconds);
})
"""


def notebook_of(*cells: str) -> Any:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def picture(notebook: "Notebook", index: int) -> str:
    """The pixels of a canvas, as one string."""
    canvas = notebook.page.locator(".dlplay-training canvas").nth(index)
    return str(canvas.evaluate("canvas => canvas.toDataURL()"))


def has_colour(notebook: "Notebook", colour: str) -> bool:
    """Say whether the canvas of the loss has pixels of exactly this colour."""
    script = """(canvas, colour) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const wanted = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
        for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] === 255 && wanted.every((part, k) => data[i + k] === part)) return true;
        return false;
    }"""
    canvas = notebook.page.locator(".dlplay-training canvas").first
    return bool(canvas.evaluate(script, colour))


def shown_colours(notebook: "Notebook") -> tuple[str, str]:
    """The colours of text and background, as they come out on the screen."""
    root = notebook.page.locator(".dlplay-training")
    css = root.evaluate("root => [getComputedStyle(root).color, getComputedStyle(root).background]")
    text, ground = ([float(part) for part in re.findall(r"[\d.]+", colour)] for colour in css)
    opaque = text[3] if len(text) > 3 else 1.0
    mixed = [opaque * t + (1 - opaque) * g for t, g in zip(text[:3], ground[:3], strict=True)]
    first, second = ("#" + "".join(f"{round(part):02x}" for part in c) for c in (mixed, ground[:3]))
    return first, second


def wait_for_state(notebook: "Notebook", state: str) -> None:
    notebook.page.wait_for_selector(f".dlplay-training[data-state='{state}']", timeout=20_000)


def test_a_run_is_seen_live(notebook: "Notebook", record_property: Any) -> None:
    notebook.open(notebook_of(SHOW, FEED, "print(view.painted)", STOP, "print(view.painted)"))
    notebook.run_cell(0)
    wait_for_state(notebook, "ready")
    notebook.run_cell(1)
    wait_for_state(notebook, "running")
    before = [picture(notebook, index) for index in (0, 1, 2, 3)]
    times = notebook.page.evaluate(COUNT, 3)
    after = [picture(notebook, index) for index in (0, 1, 2, 3)]
    assert len(times) > 10
    assert not set(before) & set(after)
    notebook.run_cell(2)
    notebook.run_cell(3)
    wait_for_state(notebook, "finished")
    assert "step 900 of 900" in notebook.page.locator(".dlplay-status").inner_text()
    gaps = [late - early for early, late in itertools.pairwise(times)]
    record_property("frames_a_second", 1000 / statistics.median(gaps))
    print(
        f"{1000 / statistics.median(gaps):.1f} frames a second (median), {len(times) / 3:.1f} mean"
    )
    print(f"{notebook.text(2).strip()}; {notebook.text(3).strip()} ms a show")
    assert "frame=0" not in notebook.text(2)


def test_a_reloaded_page_shows_the_newest_frame(notebook: "Notebook") -> None:
    notebook.open(notebook_of(SHOW, "view.show(made.snapshot(300, 'paused'), force=True)"))
    notebook.run_all()
    wait_for_state(notebook, "paused")
    notebook.reload()
    wait_for_state(notebook, "paused")
    assert "step 300 of 900" in notebook.page.locator(".dlplay-status").inner_text()


def test_themes_knobs_and_words(notebook: "Notebook") -> None:
    notebook.open(notebook_of(SHOW, "view.show(made.snapshot(300))", "print(view.log_loss)"))
    notebook.run_cell(0)
    notebook.run_cell(1)
    wait_for_state(notebook, "running")
    page = notebook.page
    page.wait_for_function(
        "() => document.querySelectorAll('.dlplay-training canvas').length === 14"
    )
    for theme, other in [("light", "dark"), ("dark", "light"), ("light", "dark")]:
        notebook.set_theme(dark=theme == "dark")
        page.wait_for_timeout(300)
        assert all(has_colour(notebook, colour) for colour in PALETTE[theme][:2]), theme
        assert not any(has_colour(notebook, colour) for colour in PALETTE[other][:2]), theme
        text, ground = shown_colours(notebook)
        assert contrast(text, ground) >= 4.5
        assert min(contrast(colour, ground) for colour in PALETTE[theme]) >= 3
    light = picture(notebook, 0)
    button = page.get_by_role("button", name="Log loss")
    assert button.get_attribute("aria-pressed") == "false"
    button.focus()
    page.keyboard.press("Space")
    page.wait_for_timeout(300)
    assert button.get_attribute("aria-pressed") == "true"
    assert picture(notebook, 0) != light
    notebook.run_cell(2)
    assert notebook.text(2) == "True\n"
    assert "step 300 of 900" in str(page.locator("canvas").first.get_attribute("aria-label"))
    assert page.locator("canvas[role=img]").count() == 14


def test_shown_twice_and_removed(notebook: "Notebook") -> None:
    notebook.open(notebook_of(SHOW, "view", "view.show(made.snapshot(100, 'paused'), force=True)"))
    notebook.run_all()
    page = notebook.page
    views = page.locator(".dlplay-training[data-state='paused']")
    page.wait_for_function("() => document.querySelectorAll('[data-state=paused]').length === 2")
    page.evaluate("() => jupyterapp.shell.currentWidget.content.widgets[1].model.outputs.clear()")
    page.wait_for_function("() => document.querySelectorAll('[data-state=paused]').length === 1")
    notebook.run_cell(2)
    assert views.count() == 1


@pytest.mark.parametrize("width", [480, 1200])
def test_it_fits_its_width(notebook: "Notebook", width: int) -> None:
    notebook.page.set_viewport_size({"width": width, "height": 1000})
    notebook.open(notebook_of(SHOW, "view.show(made.snapshot(300), force=True)"))
    notebook.run_all()
    wait_for_state(notebook, "running")
    root = notebook.page.locator(".dlplay-training")
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
