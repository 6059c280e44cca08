"""A notebook of a real JupyterLab in Chromium, for tests.

``Notebook`` is one notebook in one page; it talks to JupyterLab itself (``window.jupyterapp``),
so that a test asks for states and outputs and scrapes nothing. ``Server`` is the JupyterLab
behind it. The fixtures are in ``conftest.py``.
"""

import os
import shutil
from typing import Any
from urllib.parse import urlsplit

import nbformat
from jupyter_server_process import Server
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Route

__all__ = ["CHROMIUM_SWITCHES", "Notebook", "Server", "find_chromium"]

CHROMIUM_SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}


def find_chromium() -> str | None:
    """Chromium's path: from ``CHROMIUM``, from the distribution, or from the search path."""
    names = [os.environ.get("CHROMIUM"), "/usr/bin/chromium", "chromium", "chromium-browser"]
    names += ["google-chrome", "chrome"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Notebook:
    """One notebook in one page.

    Attributes
    ----------
    page : playwright.sync_api.Page
    console_errors : list of str
        What the page has reported as errors.
    outside : list of str
        Addresses outside loopback that the page asked for; each was refused.
    """

    def __init__(self, server: Server, browser: Browser, **context: Any) -> None:
        context = {"viewport": {"width": 1400, "height": 1000}, **context}
        self.server = server
        self.console_errors: list[str] = []
        self.outside: list[str] = []
        self._context = browser.new_context(service_workers="block", **context)
        self._context.route("**/*", self._guard)
        self.page: Page = self._context.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        self.page.on("websocket", lambda socket: self._is_outside(socket.url))

    def _guard(self, route: Route) -> None:
        if self._is_outside(route.request.url):
            route.abort()
        else:
            route.continue_()

    def _is_outside(self, url: str) -> bool:
        parts = urlsplit(url)
        inside = parts.hostname in {"127.0.0.1", "localhost", "::1"}
        if not inside and parts.scheme not in {"data", "blob", "about"}:
            self.outside.append(url)
            return True
        return False

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(f"{message.text} ({message.location.get('url', '')})")

    def open(self, notebook: str | nbformat.NotebookNode, name: str = "test.ipynb") -> "Notebook":
        """Open a notebook, by its path from the server's root, or written there first."""
        if not isinstance(notebook, str):
            notebook.metadata.setdefault("kernelspec", _KERNEL)  # else JupyterLab asks for one
            nbformat.write(notebook, self.server.root / name)
            notebook = name
        self.page.goto(self.server.address(notebook))
        self._ready()
        return self

    def reload(self) -> None:
        """Save the notebook and load its page again, on the same kernel."""
        self.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        self.page.reload()
        self._ready()

    def _ready(self) -> None:
        self.page.wait_for_function(
            """() => {
                const panel = window.jupyterapp?.shell?.currentWidget;
                return panel?.context?.isReady && panel.sessionContext?.session?.kernel;
            }""",
            timeout=90_000,
        )
        self.wait_until_idle()

    def wait_until_idle(self, timeout: float = 90) -> None:
        """Wait until the kernel has nothing to do."""
        self.page.wait_for_function(
            "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'",
            timeout=1000 * timeout,
        )

    def run_all(self, timeout: float = 120) -> None:
        """Run all cells and wait; raise where a cell ends in an error."""
        self._command("notebook:run-all-cells", timeout)
        if errors := self.errors():
            raise AssertionError("\n".join(errors))

    def run_cell(self, index: int, timeout: float = 120) -> None:
        """Run one cell, counted from 0, and wait; raise where it ends in an error."""
        self.page.evaluate(
            """index => {
                const notebook = jupyterapp.shell.currentWidget.content;
                notebook.deselectAll();
                notebook.activeCellIndex = index;
            }""",
            index,
        )
        self._command("notebook:run-cell", timeout)
        if errors := self.errors(index):
            raise AssertionError("\n".join(errors))

    def _command(self, command: str, timeout: float) -> None:
        self.page.evaluate(
            """command => {
                window.commandEnded = false;
                jupyterapp.commands.execute(command).finally(() => (window.commandEnded = true));
            }""",
            command,
        )
        self.page.wait_for_function("() => window.commandEnded", timeout=1000 * timeout)

    def outputs(self, index: int | None = None) -> list[dict[str, Any]]:
        """What one cell, or all cells, have put out, in the notebook format."""
        cells = self.page.evaluate(
            """() => jupyterapp.shell.currentWidget.content.widgets.map(
                cell => cell.model.outputs?.toJSON() ?? [])"""
        )
        chosen = cells if index is None else [cells[index]]
        return [output for outputs in chosen for output in outputs]

    def text(self, index: int | None = None) -> str:
        """What one cell, or all cells, have written to their outputs as text."""
        said = ""
        for output in self.outputs(index):
            words = output.get("text", output.get("data", {}).get("text/plain", ""))
            said += words if isinstance(words, str) else "".join(words)
        return said

    def errors(self, index: int | None = None) -> list[str]:
        """The errors in which one cell, or any cell, has ended."""
        found = [o for o in self.outputs(index) if o["output_type"] == "error"]
        return [f"{output['ename']}: {output['evalue']}" for output in found]

    def cell(self, index: int) -> Locator:
        """A cell in the page, for what only the page can tell."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def set_theme(self, dark: bool) -> None:
        """Switch JupyterLab to its dark or its light theme, and wait until it shows."""
        self.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })",
            f"JupyterLab {'Dark' if dark else 'Light'}",
        )
        light = "false" if dark else "true"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")

    def close(self) -> None:
        """Close the page and end all kernels."""
        self._context.close()
        self.server.shut_down_kernels()
