"""Fixtures for tests in a real JupyterLab: one server and one browser for the session.

A test takes ``notebook``: a page, in which it opens a notebook of its own. When the test ends,
the page must have asked for nothing outside this machine and have reported no error.

    def test_something(notebook):
        notebook.open(nbformat.v4.new_notebook(cells=[...]))
        notebook.run_all()
        assert notebook.text(0) == "..."

A course notebook is copied to ``notebook.server.root`` first, and opened by its name there.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import jupyter
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    """Chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    import jupyter

    path = jupyter.find_chromium()
    if path is None:
        pytest.skip("Chromium is not installed (CHROMIUM can name it)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(jupyter.CHROMIUM_SWITCHES)
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(
    chromium: "Browser", tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[jupyter.Server]":
    """JupyterLab on loopback, in a temporary folder."""
    import jupyter

    running = jupyter.Server(tmp_path_factory.mktemp("jupyter"))
    yield running
    running.close()


@pytest.fixture
def notebook(server: "jupyter.Server", chromium: "Browser") -> "Iterator[jupyter.Notebook]":
    """A page for one notebook; at the end it must have been quiet and have stayed at home."""
    import jupyter

    page = jupyter.Notebook(server, chromium)
    yield page
    page.close()
    assert page.outside == []
    assert page.console_errors == []
