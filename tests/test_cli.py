"""The command line, and a real ``dlplay lab``."""

import json
import os
import socket
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from urllib.request import urlopen

import pytest
from lab_process import running

import dlplay
from dlplay import resources
from dlplay.cli import main
from dlplay.commands import lab, notebooks
from dlplay.commands import test as test_command
from dlplay.errors import DlplayError

pytestmark = pytest.mark.timeout(120)


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; fails where there are more, or something on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder of notebooks that stands in for dlplay's own."""
    folder = tmp_path / "origin"
    (folder / "pictures").mkdir(parents=True)
    (folder / "00-start.ipynb").write_text("{}")
    (folder / "03-models-and-twins.ipynb").write_text("{}")
    (folder / "pictures" / "net.svg").write_text("<svg/>")
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / "00-start-checkpoint.ipynb").write_text("{}")
    monkeypatch.setattr(resources, "folder", lambda name: folder)
    return folder


@pytest.mark.parametrize("arguments", [[], ["lab"], ["doctor"], ["test"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: dlplay", *arguments]))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "COMMAND"),
        (["teach"], "'teach'"),
        (["lab", "--nobrowser"], "--nobrowser"),
        (["lab", "start"], "'start'"),
        (["lab", "007"], "'007'"),
        (["lab", "-1"], "-1"),
        (["lab", "--port", "many"], "'many'"),
        (["lab", "--port", "65536"], "'65536'"),
        (["lab", "--port"], "--port"),
        (["lab", "--no-b"], "--no-b"),
        (["doctor", "--xml"], "--xml"),
        (["test", "--slow"], "--slow"),
    ],
)
def test_wrong_argument_gets_one_line(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    line = one_line(capsys)
    assert named in line
    assert "--help" in line


def test_command_line_is_light() -> None:
    code = "import sys, dlplay.cli; print([m for m in sys.modules if m in sys.argv])"
    heavy = ["torch", "tensorflow", "keras", "numpy", "jupyterlab", "psutil"]
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dlplay", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"dlplay {dlplay.__version__}\n"


def test_unknown_notebook_number(origin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "42"]) == 1
    line = one_line(capsys)
    assert "no notebook 42" in line
    assert "00-start, 03-models-and-twins" in line


@pytest.mark.parametrize("number", ["03", "3"])
def test_notebook_by_number(
    number: str, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = []
    monkeypatch.setattr(lab, "_serve", lambda *args, **options: served.append((args, options)))
    assert main(["lab", number, "--folder", str(tmp_path / "mine"), "--no-browser"]) == 0
    ((folder, name, _), options) = served[0]
    assert (folder, name) == (tmp_path / "mine", "03-models-and-twins.ipynb")
    assert options == {"browser": False}


def test_checkout_opens_notebooks_where_they_are(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = []
    monkeypatch.setattr(lab, "_serve", lambda *args, **options: served.append(args))
    monkeypatch.setattr(resources, "in_checkout", lambda: True)
    monkeypatch.chdir(tmp_path)
    assert main(["lab"]) == 0
    assert served[0][:2] == (origin, "00-start.ipynb")
    assert not (tmp_path / "dlplay-notebooks").exists()


def test_port_in_use_names_a_free_one(origin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind((lab.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["lab", "--port", str(port)]) == 1
    line = one_line(capsys)
    assert f"Port {port} cannot be used" in line
    free = int(line.split("--port ")[1].split(",")[0])
    assert lab.choose_port(free) == free


def test_first_port_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((lab.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(lab, "FIRST_PORT", port)
        assert lab.choose_port(None) > port


def test_jupyterlab_missing(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    assert main(["lab", "--folder", str(tmp_path / "mine")]) == 1
    assert "pip install jupyterlab" in capsys.readouterr().err


def test_copy_keeps_what_the_reader_changed(origin: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine"
    first = notebooks.copy(origin, target)
    assert first.written == ("00-start.ipynb", "03-models-and-twins.ipynb", "pictures/net.svg")
    assert notebooks.copy(origin, target) == notebooks.Copies((), ())

    (target / "00-start.ipynb").write_text("mine")
    for name in ("00-start.ipynb", "03-models-and-twins.ipynb"):
        (origin / name).write_text('{"newer": 1}')
    second = notebooks.copy(origin, target)
    assert second == notebooks.Copies(("03-models-and-twins.ipynb",), ("00-start.ipynb",))
    assert (target / "00-start.ipynb").read_text() == "mine"
    assert (target / "03-models-and-twins.ipynb").read_text() == '{"newer": 1}'
    assert notebooks.copy(origin, target) == notebooks.Copies((), ("00-start.ipynb",))


def test_copy_keeps_files_that_it_did_not_write(origin: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "00-start.ipynb").write_text("mine")
    (target / notebooks.MANIFEST).write_text("not JSON")
    assert notebooks.copy(origin, target).kept == ("00-start.ipynb",)
    assert (target / "00-start.ipynb").read_text() == "mine"


def test_copy_to_a_full_disk_loses_nothing(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "mine"
    notebooks.copy(origin, target)
    (origin / "00-start.ipynb").write_text("newer")

    def full(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(DlplayError, match="No space left on device"):
            notebooks.copy(origin, target)
    assert (target / "00-start.ipynb").read_text() == "{}"
    assert not list(target.glob("*.part"))
    assert notebooks.copy(origin, target).written == ("00-start.ipynb",)


def test_lab_says_what_it_kept(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(lab, "_serve", lambda *args, **options: None)
    monkeypatch.setattr(resources, "in_checkout", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert main(["lab"]) == 0
    (tmp_path / "dlplay-notebooks" / "00-start.ipynb").write_text("mine")
    assert "Kept" not in capsys.readouterr().out
    assert main(["lab"]) == 0
    assert "Kept as you changed them: 00-start.ipynb." in capsys.readouterr().out


def test_folder_that_cannot_be_written(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "dlplay-notebooks").write_text("a file in the place of the folder")
    monkeypatch.setattr(resources, "in_checkout", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert main(["lab"]) == 1
    assert "--folder DIR" in one_line(capsys)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_read_only_working_directory(
    origin: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(resources, "in_checkout", lambda: False)
    monkeypatch.chdir("/proc")  # nobody can write there, root included
    assert main(["lab"]) == 1
    assert "--folder DIR" in one_line(capsys)


def test_lab_serves_the_first_notebook(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert server.notebook == "00-start.ipynb"
        with urlopen(server.address) as page:
            assert page.status == 200
            assert '"news": {"disabled": true}' in page.read().decode()
        with urlopen(server.address.split("?")[0]) as page:
            assert "/login" in page.url  # nothing without the token
        base, token = f"http://127.0.0.1:{server.port}", f"?token={server.token}"
        plugin = "@jupyterlab/apputils-extension:notification"
        with urlopen(f"{base}/lab/api/settings/{plugin}{token}") as answer:
            properties = json.load(answer)["schema"]["properties"]
        assert properties["fetchNews"]["default"] == "false"
        assert properties["checkForUpdates"]["default"] is False
        assert server.interrupt() == 0
        assert "Traceback" not in "".join(server.output)
    assert lab.choose_port(server.port) == server.port


def parts_run(monkeypatch: pytest.MonkeyPatch, statuses: list[int], quick: bool) -> tuple:
    calls: list[list[str]] = []

    def call(command: list[str], cwd: Path) -> int:
        calls.append(command[3:])
        return statuses[len(calls) - 1]

    monkeypatch.setattr(test_command.subprocess, "call", call)
    return test_command.run(Namespace(quick=quick)), calls


def test_test_runs_three_parts_and_the_worst_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    status, calls = parts_run(monkeypatch, [0, 1, 0], quick=False)
    assert status == 1
    assert calls == [test_command.PACKAGE[1], test_command.NOTEBOOKS[1], test_command.BROWSER[1]]


def test_test_quick_leaves_out_browser_and_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts_run(monkeypatch, [0], quick=True) == (0, [test_command.PACKAGE[1]])


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_test_counts_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    status, _ = parts_run(monkeypatch, [-11], quick=True)
    assert status == 139


def test_test_without_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(resources, "in_checkout", lambda: False)
    assert main(["test"]) == 1
    assert "needs a checkout" in one_line(capsys)


def test_test_without_its_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    absent = {"nbval", "pytest_timeout"}
    monkeypatch.setattr(test_command, "find_spec", lambda name: None if name in absent else name)
    assert main(["test"]) == 1
    line = one_line(capsys)
    assert "pytest-timeout, nbval" in line
    assert 'pip install -e ".[test]"' in line
