"""The training lab in a real JupyterLab, as a learner uses it: notebook 00 and a mouse and keys."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

nbformat = pytest.importorskip("nbformat")

if TYPE_CHECKING:
    from jupyter import Notebook
    from playwright.sync_api import Locator

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LONG = "lab.settings = lab.settings.replace(epochs=2000)"


class Lab:
    """The lab in a page: what a person can see of it, and press."""

    def __init__(self, notebook: "Notebook") -> None:
        self.page = notebook.page
        self.root = self.page.locator(".dlplay-lab")
        self.view = self.root.locator(".dlplay-training")

    def press(self, name: str) -> None:
        self.root.get_by_role("button", name=re.compile(name)).first.click()

    def wait_for(self, *states: str) -> None:
        picked = ", ".join(f".dlplay-training[data-state='{state}']" for state in states)
        self.page.wait_for_selector(picked, timeout=60_000)

    def step(self) -> int:
        found = re.search(r"step ([\d,]+) of", self.view.locator(".dlplay-status").inner_text())
        return int(found[1].replace(",", "")) if found else 0

    def wait_for_step_after(self, step: int) -> int:
        for _ in range(300):
            if (now := self.step()) > step:
                return now
            self.page.wait_for_timeout(100)
        raise AssertionError(f"no step after {step}")

    def pictures(self) -> list[str]:
        """The pixels of the loss curve and of the first layer's two histograms."""
        canvases = self.view.locator("canvas")
        return [canvases.nth(i).evaluate("canvas => canvas.toDataURL()") for i in (0, 2, 3)]

    def slider(self, label: str) -> "Locator":
        row = self.root.locator(".widget-inline-hbox", has_text=label).first
        return row.locator(".noUi-handle")


@pytest.fixture
def log(notebook: "Notebook") -> Iterator[None]:
    """The server's and the kernels' log must name no error that the test has caused."""
    before = notebook.server.log.stat().st_size
    yield
    with notebook.server.log.open() as text:
        text.seek(before)
        assert "Traceback" not in text.read()


@pytest.fixture
def start(notebook: "Notebook", log: None) -> Lab:
    """Notebook 00, run from top to bottom."""
    shutil.copy(NOTEBOOKS / "00-start.ipynb", notebook.server.root)
    notebook.open("00-start.ipynb")
    notebook.run_all(timeout=240)
    return Lab(notebook)


def open_lab(notebook: "Notebook", *cells: str) -> Lab:
    cells = ("import dlplay\nlab = dlplay.labs.training()\nlab", *cells)
    notebook.open(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells]))
    notebook.run_cell(0)
    lab = Lab(notebook)
    lab.wait_for("ready")
    return lab


def test_train_turn_pause_resume_stop(start: Lab, notebook: "Notebook") -> None:
    lab = start
    lab.page.set_viewport_size({"width": 1400, "height": 2000})  # what is out of sight is not drawn
    lab.view.scroll_into_view_if_needed()
    lab.wait_for("ready")
    lab.press("Train")
    lab.wait_for("running")
    lab.wait_for_step_after(20)
    before = lab.pictures()
    lab.wait_for_step_after(lab.step())
    assert not set(before) & set(lab.pictures())

    handle = lab.slider("learning rate")
    handle.focus()
    lab.page.keyboard.press("ArrowLeft")
    expect_status(lab, "learning rate 0.02")

    lab.press("Pause")
    lab.wait_for("paused")
    resting = lab.step()
    lab.page.wait_for_timeout(500)
    assert lab.step() == resting
    lab.press("Step")
    assert lab.wait_for_step_after(resting) == resting + 1
    lab.wait_for("paused")
    lab.press("Go on")
    lab.wait_for("running", "finished")
    lab.wait_for_step_after(resting + 1)
    lab.press("Stop|Train")
    lab.wait_for("stopped", "finished", "running")


def expect_status(lab: Lab, words: str) -> None:
    lab.page.wait_for_function(
        "words => document.querySelector('.dlplay-status').innerText.includes(words)",
        arg=words,
        timeout=20_000,
    )


def test_cells_run_beside_a_run_and_a_closed_tab_comes_back(
    notebook: "Notebook", log: None
) -> None:
    lab = open_lab(notebook, LONG, "print(6 * 7)", "lab.run.stop()", "print(lab.run.wait().state)")
    notebook.run_cell(1)
    lab.press("Train")
    lab.wait_for("running")
    step = lab.wait_for_step_after(0)
    notebook.run_cell(2)
    assert notebook.text(2).strip() == "42"
    step = lab.wait_for_step_after(step)
    notebook.reload()  # the tab is closed and opened again; the run goes on in the kernel
    lab.wait_for("running")
    lab.wait_for_step_after(step)
    notebook.run_cell(3)
    lab.wait_for("stopped")
    notebook.run_cell(4)
    assert notebook.text(4).strip() == "stopped"


def test_a_cell_that_runs_again_ends_its_old_run(notebook: "Notebook", log: None) -> None:
    keep = "old = lab"
    lab = open_lab(notebook, keep, LONG, "print(old.run.wait(30).state)")
    notebook.run_cell(1)
    notebook.run_cell(2)
    lab.press("Train")
    lab.wait_for("running")
    notebook.run_cell(0)
    lab.wait_for("ready")
    notebook.run_cell(3)
    assert notebook.text(3).strip() == "stopped"


def test_a_restart_in_mid_run_hangs_nothing(notebook: "Notebook") -> None:
    lab = open_lab(notebook, LONG)
    notebook.run_cell(1)
    lab.press("Train")
    lab.wait_for("running")
    notebook.page.evaluate(
        "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    notebook.wait_until_idle()
    notebook.run_cell(0)
    lab.wait_for("ready")


def test_what_cannot_be_is_said_in_the_lab(notebook: "Notebook", log: None) -> None:
    lab = open_lab(notebook)
    row = lab.root.locator(".widget-inline-hbox", has_text="data").first
    row.locator("select").select_option("moons")
    lab.press("Train")
    lab.wait_for("failed")
    alert = lab.root.get_by_role("alert")
    assert "use Network('mlp')" in alert.inner_text()
    row.locator("select").select_option("digits")
    assert_gone(alert)
    lab.press("Train")
    lab.wait_for("running", "finished")


def assert_gone(alert: Any) -> None:
    alert.wait_for(state="detached", timeout=10_000)
