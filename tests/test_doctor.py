"""``dlplay doctor``: one real examination, and each problem by itself."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dlplay.cli import main
from dlplay.commands import doctor, machine, probes

HEALTHY: dict[str, Any] = {
    "platform": "Linux",
    "executable": sys.executable,
    "kernel": sys.executable,
    "versions": {"dlplay": "0.1.0", "torch": "2.14.1", "jupyterlab": "4.6.6", "triton": None},
    "cores": 2,
    "memory": {"total_gb": 8.0, "free_gb": 4.0},
    "widgets": {
        "ipywidgets": {"version": "8.1.9", "extension": "5.0.16", "fault": None},
        "anywidget": {"version": "0.11.0", "extension": "0.11.0", "fault": None},
    },
    "keras_backend": None,
    "frameworks": {
        "pytorch": {"installed": True, "devices": ["cpu"], "fault": None},
        "keras": {"installed": True, "devices": ["CPU:0"], "fault": None},
        "torchvision": {"fault": None},
        "together": {
            "tried": True,
            "fault_without_dlplay": "crashed (status -11)",
            "fault_with_dlplay": None,
        },
    },
}


def changed(path: str, value: object) -> dict[str, Any]:
    """The healthy report with one value changed; ``path`` goes down by slashes."""
    report = copy.deepcopy(HEALTHY)
    *way, last = path.split("/")
    place = report
    for step in way:
        place = place[step]
    assert last in place
    place[last] = value
    return report


@pytest.fixture(scope="module")
def examined() -> dict[str, Any]:
    """What doctor finds where the tests run."""
    return doctor.examine()


def test_real_examination(examined: dict[str, Any]) -> None:
    assert not [problem for problem in doctor.problems(examined) if problem.stops]
    assert examined["versions"]["torch"] == machine.version("torch") is not None
    found = examined["frameworks"]
    assert found["pytorch"]["devices"][0] == "cpu"
    assert found["keras"]["devices"][0] == "CPU:0"
    assert found["together"]["tried"]
    assert found["together"]["fault_with_dlplay"] is None
    assert 0 < examined["memory"]["free_gb"] <= examined["memory"]["total_gb"]
    assert 1 <= examined["cores"] <= (os.cpu_count() or 1)
    assert all(state["fault"] is None for state in examined["widgets"].values())
    assert doctor._same_file(examined["kernel"], sys.executable)


def test_json_is_one_object_and_nothing_else(
    examined: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: examined)
    assert main(["doctor", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["works"] is True
    assert printed["versions"] == examined["versions"]


def test_healthy_report_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: HEALTHY)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "fails without dlplay (crashed (status -11)), works after `import dlplay`" in out
    assert out.endswith("No problem found.\n")


@pytest.mark.parametrize(
    ("path", "value", "named", "remedy", "stops"),
    [
        ("versions/jupyterlab", None, "JupyterLab", "pip install jupyterlab", True),
        ("kernel", None, "no Python kernel", "pip install ipykernel", True),
        ("kernel", "/elsewhere/python3", "/elsewhere/python3", "--sys-prefix", True),
        (
            "widgets/anywidget/fault",
            "does not fit its JupyterLab extension",
            "anywidget does not fit",
            "anywidget",
            True,
        ),
        ("frameworks/pytorch/installed", False, "PyTorch", "pip install torch", False),
        ("frameworks/keras/installed", False, "Keras", "pip install keras tensorflow", False),
        ("frameworks/keras/fault", "ImportError: libX", "libX", "--force-reinstall", True),
        (
            "frameworks/torchvision/fault",
            "RuntimeError: operator torchvision::nms does not exist",
            "nms",
            "torch torchvision",
            False,
        ),
        (
            "frameworks/together/fault_with_dlplay",
            "crashed (status -11)",
            "status -11",
            "one framework at a time",
            True,
        ),
        ("keras_backend", "jax", "'jax'", "Unset KERAS_BACKEND", True),
        ("memory/free_gb", 1.2, "1.2 GB", "Close other programs", False),
    ],
)
def test_problem_and_what_to_do(
    path: str,
    value: object,
    named: str,
    remedy: str,
    stops: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: changed(path, value))
    (problem,) = doctor.problems(doctor.examine())
    assert named in problem.what
    assert remedy in problem.remedy
    assert problem.stops is stops
    assert main(["doctor"]) == (1 if stops else 0)
    out = capsys.readouterr().out
    assert problem.what in out
    assert problem.remedy in out


def test_both_frameworks_missing_stops() -> None:
    report = changed("frameworks/pytorch/installed", False)
    report["frameworks"]["keras"]["installed"] = False
    assert [problem.stops for problem in doctor.problems(report)] == [True, True]


def test_missing_framework_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(probes, "ask", lambda code: asked.append(code) or probes.Answer(["cpu"]))
    monkeypatch.setattr(probes.frameworks, "installed", lambda wing: wing == "pytorch")
    report = probes.frameworks_report()
    assert report["keras"] == {"installed": False, "devices": [], "fault": None}
    assert report["together"]["tried"] is False
    assert len(asked) == 2  # PyTorch's devices, and torchvision


HIDE_TENSORFLOW = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
hide = lambda name, *more: None if name.split(".")[0] == "tensorflow" else find(name, *more)
PathFinder.find_spec = hide
"""


def test_examination_without_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDE_TENSORFLOW)
    done = subprocess.run(
        [sys.executable, "-m", "dlplay", "doctor", "--json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    report = json.loads(done.stdout)
    assert report["frameworks"]["keras"] == {"installed": False, "devices": [], "fault": None}
    assert report["frameworks"]["pytorch"]["devices"][0] == "cpu"
    assert [problem["what"].split()[0] for problem in report["problems"]] == ["Keras"]
    assert report["works"] is True
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("raise ValueError('so it is')", "ValueError: so it is"),
        ("import os; os.abort()", "crashed"),
        ("print('no JSON')", "no JSON"),
        ("pass", "no answer"),
    ],
)
def test_a_process_that_fails_is_an_answer(code: str, fault: str) -> None:
    answer = probes.ask(code)
    assert fault in (answer.fault or "")
    assert answer.value is None


def test_a_process_that_hangs_is_an_answer() -> None:
    answer = probes.ask("import time; time.sleep(60)", timeout=1)
    assert answer.fault == "gave no answer within 1 seconds"


def test_answer_is_the_last_line() -> None:
    assert probes.ask("print('a notice'); print('[1, 2]')") == probes.Answer([1, 2])


def test_torchvision_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "operator torchvision::nms does not exist"
    (tmp_path / "torchvision.py").write_text(f"raise RuntimeError({message!r})")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert probes.ask(probes._TORCHVISION).fault == f"RuntimeError: {message}"


@pytest.mark.parametrize(
    ("package", "here", "there", "fit"),
    [
        ("ipywidgets", "8.1.9", "5.0.16", True),
        ("ipywidgets", "8.1.9", "3.1.0", False),
        ("ipywidgets", "7.8.0", "5.0.16", False),
        ("anywidget", "0.11.0", "0.11.2", True),
        ("anywidget", "0.11.0", "0.9.13", False),
    ],
)
def test_widget_versions_fit(package: str, here: str, there: str, fit: bool) -> None:
    assert machine._fit(package, here, there) is fit


@pytest.mark.parametrize(
    ("installed", "extensions", "fault"),
    [
        ("0.11.0", {"anywidget": "0.11.0"}, None),
        (None, {"anywidget": "0.11.0"}, "is not installed"),
        ("0.11.0", {}, "no extension where this Python's JupyterLab looks"),
        ("0.11.0", {"anywidget": None}, "disabled"),
        ("0.11.0", {"anywidget": "0.9.0"}, "does not fit"),
    ],
)
def test_widget_faults(
    installed: str | None,
    extensions: dict[str, str | None],
    fault: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "version", lambda package: installed)
    found = machine._widget("anywidget", extensions)["fault"]
    assert found is None if fault is None else fault in found


def test_extensions_are_those_that_jupyterlab_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension = tmp_path / "labextensions" / "anywidget"
    extension.mkdir(parents=True)
    package = {"name": "anywidget", "version": "0.1.0", "jupyterlab": {"_build": {"load": "x.js"}}}
    (extension / "package.json").write_text(json.dumps(package))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))  # found before the environment's own
    assert machine._lab_extensions()["anywidget"] == "0.1.0"
    assert machine.widgets()["anywidget"]["fault"] == "does not fit its JupyterLab extension"


def test_disabled_extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "labconfig").mkdir()
    config = {"disabledExtensions": {"anywidget": True}}
    (tmp_path / "labconfig" / "page_config.json").write_text(json.dumps(config))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    assert "disabled" in machine.widgets()["anywidget"]["fault"]


@pytest.fixture
def cgroup(tmp_path: Path) -> Callable[[str], Path]:
    def make(limit: str) -> Path:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text("1500000000\n")
        (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 500000000\nfile 2\n")
        return tmp_path

    return make


def test_memory_limit_of_a_container(cgroup: Callable[[str], Path]) -> None:
    assert machine._container_limit(cgroup("2000000000\n")) == (2_000_000_000, 1_000_000_000)
    assert machine._container_limit(cgroup("max\n")) is None


def test_memory_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_container_limit", lambda: (1_000_000_000, 400_000_000))
    assert machine.memory() == {"total_gb": 1.0, "free_gb": 0.4}
