"""The benchmarks: their report, their command line, and that they measure what they say."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import _report, _resident
from benchmarks._report import Goal, Report, Row, ratio, table, take_turns

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("startup", "steps", "memory")

MET, NARROW = Goal("easy", 1.0, 10.0, "s"), Goal("narrow", 1.0, 1.05)
MISSED, FAR = Goal("slow", 1.2, 1.1, "x"), Goal("far", 9.0, 1.1, "x")


def report(*goals: Goal) -> Report:
    return Report("A title", [Row("first", 12.5, "ms", "a remark")], goals, ["A note."])


def run_main(goals: Sequence[Goal], *arguments: str) -> int:
    return _report.main("name", "What it is.", lambda quick: report(*goals), arguments)


def command(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("goals", "last"),
    [
        ((MET, NARROW), "narrow: 1 (goal: at most 1.05): met"),
        ((NARROW, MISSED, FAR), "far: 9 x (goal: at most 1.1 x): MISSED"),
    ],
)
def test_last_line_is_the_figure_that_decides(goals: tuple[Goal, ...], last: str) -> None:
    text = table(report(*goals))
    assert text.splitlines()[-1] == last
    assert all(str(goal) in text for goal in goals)
    assert "first        12.5 ms        a remark" in text
    assert "A note." in text


def test_goal_of_zero_and_of_no_number() -> None:
    assert Goal("none", 0, 0).met
    assert not Goal("none", 1, 0).met
    assert Goal("none", 1, 0).strain == float("inf")
    assert not Goal("broken", float("nan"), 1.0).met


@pytest.mark.parametrize(("goals", "status"), [((MET,), 0), ((MET, MISSED), 1)])
def test_check_gives_the_status_and_says_what_was_missed(
    goals: tuple[Goal, ...], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(goals, "--check") == status
    said = capsys.readouterr().err
    assert said == (f"missed: {MISSED}\n" if status else "")


def test_without_check_a_missed_goal_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main((MISSED,)) == 0
    assert "MISSED" in capsys.readouterr().out


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main((MET, MISSED), "--json", "--check") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["met"] is False
    assert found["decisive"] == "slow"
    assert found["rows"] == [{"name": "first", "value": 12.5, "unit": "ms", "note": "a remark"}]
    assert [goal["met"] for goal in found["goals"]] == [True, False]
    assert set(found["machine"]) == {"system", "cores", "memory_gb", "versions"}


def test_quick_reaches_the_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    told = []

    def measure(quick: bool) -> Report:
        told.append(quick)
        return report(MET)

    for arguments in (["--quick"], []):
        _report.main("name", None, measure, arguments)
    assert told == [True, False]


def test_contenders_take_turns() -> None:
    order: list[str] = []

    def contender(name: str) -> float:
        order.append(name)
        return float(len(order))

    times = take_turns({"a": lambda: contender("a"), "b": lambda: contender("b")}, 2)
    assert order == ["a", "b", "a", "b"]
    assert times == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


def test_ratio_is_taken_turn_by_turn() -> None:
    # The machine was ten times slower in the second turn: the ratio does not see it.
    assert ratio([1.1, 11.0, 1.1], [1.0, 10.0, 1.0]) == pytest.approx(1.1)


def test_pages_of_cuda_libraries_are_told_from_others() -> None:
    def mapping(path: str, kilobytes: int) -> list[str]:
        head = f"7f00-7fff r-xp 00000000 08:01 123   {path}"
        return [head, "Size:   999 kB", f"Rss:   {kilobytes} kB", "Pss:   1 kB"]

    lines = [
        *mapping("/p/nvidia/cu13/lib/libcublasLt.so.13", 100),
        *mapping("/p/torch/lib/libtorch_cpu.so", 1000),
        *mapping("/p/torch/lib/libtorch_cuda.so", 20),
        *mapping("/p/triton/_C/libtriton.so", 3),
        *mapping("", 1000),
        *mapping("[heap]", 1000),
    ]
    assert _resident.cuda_pages_of(lines) == 123 * 1024


def test_peak_counts_what_was_given_back() -> None:
    code = "x = b'x' * 300_000_000; del x; print('done', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with _resident.watched(process.pid) as memory:
            process.stdout.readline()
        process.communicate(b"\n")
    assert memory.cuda == 0
    if sys.platform == "linux":
        assert 300e6 < memory.peak < 400e6


@pytest.mark.parametrize("name", NAMES)
def test_help(name: str) -> None:
    done = command(name, "--help")
    assert done.returncode == 0
    for option in ("--quick", "--check", "--json", "Goal"):
        assert option in done.stdout


def test_wrong_option_is_refused() -> None:
    assert command("memory", "--slow").returncode == 2


def test_memory_of_the_first_notebook() -> None:
    done = command("memory", "--quick", "--json", "--check")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["met"] is True
    assert found["rows"][-1]["name"] == "00-start"
    assert 0.3 < found["rows"][-1]["value"] < 1.5
