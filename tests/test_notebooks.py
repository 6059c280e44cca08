"""The notebooks as texts: what is stored, how long a cell is, where the links lead.

That they run is nbval's to say: ``dlplay test``.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dlplay.checks import exercises

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

LONGEST = 15
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NETWORK = re.compile(
    r"pip3? install|conda install|apt(?:-get)? install|\bwget\b|\bcurl\b|urlopen|urlretrieve"
    r"|import requests|download=True|get_file\("
)
CHECK = re.compile(r"""checks\.check\(\s*["']([\w.]+)["']""")

Cell = dict[str, Any]


def stored(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def cells(path: Path, kind: str) -> list[tuple[int, str]]:
    """Number and text of the cells of a kind."""
    return [
        (number, "".join(cell["source"]))
        for number, cell in enumerate(stored(path)["cells"])
        if cell["cell_type"] == kind
    ]


def text(path: Path) -> str:
    return "\n\n".join(source for _, source in cells(path, "markdown"))


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS][:1] == ["00-start"]


@each
def test_name_and_kernel(path: Path) -> None:
    assert re.fullmatch(r"\d\d-[a-z]+(-[a-z]+)*", path.stem)
    notebook = stored(path)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info"}
    assert notebook["nbformat"] == 4


@each
def test_stored_without_outputs_and_counts(path: Path) -> None:
    left = [
        number
        for number, cell in enumerate(stored(path)["cells"])
        if cell.get("outputs") or cell.get("execution_count") is not None
    ]
    assert left == []


@each
def test_cells_have_names_of_their_own(path: Path) -> None:
    ids = [cell["id"] for cell in stored(path)["cells"]]
    assert len(set(ids)) == len(ids)


@each
def test_code_cells_are_short_and_none_is_empty(path: Path) -> None:
    sizes = {number: len(source.splitlines()) for number, source in cells(path, "code")}
    assert {number: size for number, size in sizes.items() if not 1 <= size <= LONGEST} == {}


@each
def test_code_is_python(path: Path) -> None:
    for _, source in cells(path, "code"):
        ast.parse(source)


@each
def test_it_begins_with_its_title(path: Path) -> None:
    first = text(path).splitlines()[0]
    number, words = path.stem.split("-", 1)
    assert re.sub(r"\W+", "-", first.lower()).strip("-") == f"{number}-{words}"
    assert "\n# " not in text(path)  # one title


@each
def test_it_ends_with_exercises_and_what_to_read(path: Path) -> None:
    headings = re.findall(r"^## (.+)$", text(path), re.M)
    assert headings[-2:] == ["Exercises", "Read next"]


@each
def test_exercises_are_those_of_the_checks(path: Path) -> None:
    called = [name for _, source in cells(path, "code") for name in CHECK.findall(source)]
    room = path.stem.split("-", 1)[1].replace("-", "_")
    assert called == [name for name in exercises() if name.startswith(f"{room}.")]
    assert called
    assert text(path).count("<summary>Solution</summary>") == len(called)


def relative(path: Path) -> list[str]:
    return [link for link in LINK.findall(text(path)) if not re.match(r"[a-z]+:", link)]


@each
def test_relative_links_lead_somewhere(path: Path) -> None:
    broken = [link for link in relative(path) if not (path.parent / link.split("#")[0]).exists()]
    assert broken == []


@each
def test_nothing_is_downloaded(path: Path) -> None:
    found = [
        f"cell {number}: {match[0]}"
        for kind in ("code", "markdown")
        for number, source in cells(path, kind)
        for match in NETWORK.finditer(source)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line", ["!pip install x", "%pip install x", "!wget x", "MNIST('.', download=True)"]
)
def test_download_test_can_fail(line: str) -> None:
    assert NETWORK.search(line)


def test_readme_s_table_lists_the_notebooks_that_there_are() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d\d) \| \[([\w-]+)\]\(notebooks/([\w-]+)\.ipynb\) \|", readme, re.M)
    assert [f"{number}-{name}" for number, name, _ in rows] == [stem for _, _, stem in rows]
    assert [stem for _, _, stem in rows] == [path.stem for path in NOTEBOOKS]
