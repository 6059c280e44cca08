"""The command line: ``dlplay lab``, ``dlplay doctor`` and ``dlplay test``.

This module only reads the arguments; each command is a module of ``dlplay.commands`` with a
function ``run``, imported when it is called.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import dlplay
from dlplay.errors import DlplayError


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse would print the usage as well."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see `{self.prog} --help`\n")


def _notebook_number(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,2}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no notebook number such as 07 or 7")
    return text.zfill(2)


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 65535")
    return int(text)


def _add(commands: "argparse._SubParsersAction[_Parser]", name: str, what: str) -> _Parser:
    return commands.add_parser(name, help=what, description=what, allow_abbrev=False)


def _parser() -> _Parser:
    parser = _Parser(prog="dlplay", allow_abbrev=False)
    parser.description = "The same network in PyTorch and in Keras, side by side and live."
    parser.add_argument("--version", action="version", version=f"dlplay {dlplay.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_lab(_add(commands, "lab", "Open a notebook of the course in JupyterLab."))
    doctor = _add(commands, "doctor", "Check this installation, and say what to do about problems.")
    doctor.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    test = _add(commands, "test", "Run the tests: the package's, the notebooks', the browser's.")
    test.add_argument("--quick", action="store_true", help="only the package's own tests")
    return parser


def _add_lab(lab: argparse.ArgumentParser) -> None:
    lab.add_argument(
        "number",
        nargs="?",
        type=_notebook_number,
        default="00",
        metavar="NUMBER",
        help="the notebook's number, such as 07 or 7 (default: 00)",
    )
    lab.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="the port on this computer (default: the first free one from 8888)",
    )
    lab.add_argument(
        "--no-browser", action="store_true", help="print the address and open no browser"
    )
    lab.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="copy the notebooks to DIR and work there; a notebook that you changed is never"
        " written over (default: ./dlplay-notebooks, or no copy in a checkout)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 fine, 1 a problem, 2 wrong arguments."""
    arguments = _parser().parse_args(argv)
    command = import_module(f"dlplay.commands.{arguments.command}")
    try:
        return command.run(arguments)
    except DlplayError as error:
        print(f"dlplay: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
