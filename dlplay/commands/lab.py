"""``dlplay lab``: JupyterLab on one notebook, on this computer only, with a calm first view."""

import argparse
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from dlplay import resources
from dlplay.commands import notebooks
from dlplay.errors import DlplayError

HOST = "127.0.0.1"
FIRST_PORT = 8888

#: Its ``labconfig`` holds our defaults for JupyterLab; a setting that a user made still wins.
CONFIG = Path(__file__).resolve().parent.parent / "jupyter"


def run(arguments: argparse.Namespace) -> int:
    """Start the server and stay until it ends (Ctrl-C).

    Raises
    ------
    DlplayError
        For a number with no notebook, a port in use, a folder that cannot be written, or an
        installation without JupyterLab.
    """
    origin = notebooks.source()
    name = notebooks.find(origin, arguments.number)
    port = choose_port(arguments.port)
    folder = _prepare(origin, arguments.folder)
    print(f"{name} in JupyterLab, from {folder}. Stop it with Ctrl-C.", flush=True)
    _serve(folder, name, port, browser=not arguments.no_browser)
    return 0


def _prepare(origin: Path, folder: Path | None) -> Path:
    """The folder to work in: the checkout's own, or one with copies."""
    if folder is None and resources.in_checkout():
        return origin
    target = (folder or Path("dlplay-notebooks")).absolute()
    copies = notebooks.copy(origin, target)
    if copies.kept:
        print(
            f"Kept as you changed them: {', '.join(copies.kept)}."
            " Rename yours to get dlplay's own again."
        )
    return target


def choose_port(wanted: int | None) -> int:
    """The port to serve on: the one that is wanted, or the first free one from 8888.

    Raises
    ------
    DlplayError
        Where the wanted port cannot be used; the message names one that can.
    """
    if wanted is None:
        return next(_free_ports())
    try:
        _bind(wanted)
    except OSError as error:
        raise DlplayError(
            f"Port {wanted} cannot be used ({error.strerror}): take --port {next(_free_ports())},"
            " which is free."
        ) from error
    return wanted


def _free_ports() -> Iterator[int]:
    for port in range(FIRST_PORT, 65536):
        with suppress(OSError):
            _bind(port)
            yield port
    raise DlplayError(f"No port from {FIRST_PORT} up is free: name one with --port N.")


def _bind(port: int) -> None:
    with socket.socket() as probe:
        if os.name == "posix":  # a port that was in use a moment ago can be used again
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))


def _serve(folder: Path, name: str, port: int, browser: bool) -> None:
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise DlplayError(
            f"JupyterLab cannot be loaded ({error}): install it with `pip install jupyterlab`."
        ) from error
    before = os.environ.get("JUPYTER_CONFIG_PATH")
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(CONFIG), before]))
    with suppress(KeyboardInterrupt):  # Ctrl-C before the server listens to it
        LabApp.launch_instance(argv=_options(folder, name, port, browser))


def _options(folder: Path, name: str, port: int, browser: bool) -> list[str]:
    options = {
        "ServerApp.root_dir": folder,
        "ServerApp.ip": HOST,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": browser,
        "ServerApp.answer_yes": True,  # Ctrl-C needs no second question
        "ServerApp.allow_root": True,  # containers run as root; loopback and the token protect
        "ServerApp.log_level": "WARN",
        "LabApp.log_level": "WARN",
        "LabApp.default_url": f"/doc/tree/{quote(name)}",
        "LabApp.news_url": None,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    return [f"--{option}={value}" for option, value in options.items()]
