"""JupyterLab on loopback for tests, with every folder that Jupyter would use in one place."""

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

_SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}
_FOLDERS = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "IPYTHONDIR",
)


class Server:
    """JupyterLab on loopback, isolated from the user's own settings.

    Parameters
    ----------
    folder : Path
        An empty folder; the notebooks lie in ``server.root``, a folder inside it.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "notebooks"
        self.root.mkdir()
        self.log = folder / "server.log"
        self._token = secrets.token_hex(16)
        environment = self._isolate(folder)
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                self._command(), env=environment, stdout=log, stderr=log, cwd=self.root
            )
        self.url = self._wait(Path(environment["JUPYTER_RUNTIME_DIR"]))

    def _isolate(self, folder: Path) -> dict[str, str]:
        places = {name: str(folder / name.lower()) for name in _FOLDERS}
        overrides = Path(places["JUPYTER_CONFIG_DIR"]) / "labconfig/default_setting_overrides.json"
        overrides.parent.mkdir(parents=True)
        overrides.write_text(json.dumps(_SETTINGS))
        return {**os.environ, **places, "JUPYTER_PREFER_ENV_PATH": "1"}

    def _command(self) -> list[str]:
        options = [
            "--no-browser",
            "--expose-app-in-browser",
            "--ServerApp.ip=127.0.0.1",
            "--ServerApp.port=0",
            f"--ServerApp.root_dir={self.root}",
            f"--IdentityProvider.token={self._token}",
            "--LabApp.news_url=None",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ]
        if hasattr(os, "getuid") and os.getuid() == 0:
            options.append("--allow-root")
        return [sys.executable, "-m", "jupyterlab", *options]

    def _wait(self, runtime: Path, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._process.poll() is None:
            for found in runtime.glob("jpserver-*.json"):
                try:
                    return str(json.loads(found.read_text())["url"])
                except ValueError:
                    pass  # the file is being written
            time.sleep(0.1)
        self.close()
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text()[-3000:]}")

    def address(self, path: str) -> str:
        """The page of one notebook, by its path from ``root``."""
        return f"{self.url}doc/tree/{quote(path)}?token={self._token}"

    def request(self, method: str, path: str) -> Any:
        """Call Jupyter's REST interface and give its answer."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", f"token {self._token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def shut_down_kernels(self) -> None:
        """End every session with its kernel."""
        for session in self.request("GET", "api/sessions"):
            self.request("DELETE", f"api/sessions/{session['id']}")

    def close(self) -> None:
        """End the server and its kernels."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
