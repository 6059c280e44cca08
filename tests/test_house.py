"""The house holds: light imports, floors, two wings alike, and no skipped test in CI."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dlplay"
FRAMEWORKS = {"torch", "torchvision", "keras", "tensorflow"}
HEAVY = {*FRAMEWORKS, "numpy", "triton", "jax", "ipywidgets", "anywidget", "IPython"}

#: From the ground up. Downloads go through the wings, so the data stand above them.
FLOORS: tuple[set[str], ...] = (
    {"errors", "resources"},
    {"frameworks"},
    {"records", "settings"},
    {"traces"},
    {"pytorch", "keras"},
    {"data"},
    {"twins"},
    {"runs"},
    {"views"},
    {"labs", "checks"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

# -- light imports --------------------------------------------------------------------------------


def loaded_by(statement: str) -> set[str]:
    """The heavy modules that a fresh Python has loaded after a statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps([*sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return HEAVY & set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "import dlplay",
        "import dlplay; dlplay.settings.Run()",
        "import dlplay.cli",
        "dir(__import__('dlplay'))",
    ],
)
def test_import_is_light(statement: str) -> None:
    assert loaded_by(statement) == set()


def test_no_floor_but_the_wings_imports_a_framework() -> None:
    rooms = [room for room in FLOOR if room not in ("pytorch", "keras", "__main__")]
    assert (
        loaded_by(f"import {', '.join(f'dlplay.{room}' for room in rooms)}") & FRAMEWORKS == set()
    )


def test_lightness_tests_can_fail() -> None:
    assert "numpy" in loaded_by("import dlplay; dlplay.load")
    assert "torch" in loaded_by("import dlplay.pytorch")


# -- floors ---------------------------------------------------------------------------------------


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of all that a module imports, wherever; of a package also the part.

    What only a type checker sees (``if TYPE_CHECKING:``) is left out.
    """
    tree = ast.parse(source)
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they lead"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def wrong_imports(room: str, source: str) -> list[str]:
    """What a module on the floor of ``room`` may not import."""
    wrong = []
    for line, name in imports(source):
        first, _, rest = name.partition(".")
        inner = rest.partition(".")[0]
        outside = first in FRAMEWORKS and room not in ("pytorch", "keras")
        other_wing = first in FRAMEWORKS and (
            (room == "pytorch") != (first in ("torch", "torchvision"))
        )
        upward = (
            first == "dlplay"
            and inner != room
            and room != "__init__"
            and (FLOOR[inner] if inner in FLOOR else len(FLOORS) if inner != "__version__" else 0)
            >= FLOOR[room]
        )
        # `import dlplay` reaches everything, so only the top floors may.
        whole = name == "dlplay" and FLOOR.get(room, 0) >= FLOOR["commands"]
        if outside or other_wing or (upward and not whole):
            wrong.append(f"{room}, line {line}: {name}")
    return wrong


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_every_room_has_its_floor() -> None:
    assert {room_of(path) for path in MODULES} - {"__init__"} == set(FLOOR)


def test_imports_only_go_down() -> None:
    found = [
        wrong
        for path in MODULES
        for wrong in wrong_imports(room_of(path), path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("runs", "import torch"),
        ("views", "def f():\n    from keras import layers"),
        ("keras", "import torch"),
        ("pytorch", "import tensorflow as tf"),
        ("pytorch", "from dlplay.keras import arrays"),
        ("settings", "from dlplay import data"),
        ("runs", "from dlplay.views import TrainingView"),
        ("labs", "import dlplay"),
        ("checks", "from dlplay.labs import training"),
        ("data", "import dlplay.twins"),
    ],
)
def test_floor_test_can_fail(room: str, source: str) -> None:
    assert len(wrong_imports(room, source)) == 1


# -- two wings alike ------------------------------------------------------------------------------

Contract = dict[str, list[tuple[str, str, str | None]] | None]


def contract(source: str) -> Contract:
    """The public names of a module: functions and methods with their parameters, classes without.

    A parameter is its name, its kind and its default. Types are left out: they are a framework's.
    """
    tree = ast.parse(source)
    found: Contract = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = parameters(node.args)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name] = None
            found |= {
                f"{node.name}.{item.name}": parameters(item.args)
                for item in node.body
                if isinstance(item, ast.FunctionDef)
                and (item.name == "__init__" or not item.name.startswith("_"))
            }
    return found


def parameters(arguments: ast.arguments) -> list[tuple[str, str, str | None]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    defaults = [None] * missing + [ast.unparse(default) for default in arguments.defaults]
    kinds = ["only positional"] * len(arguments.posonlyargs) + ["any"] * len(arguments.args)
    names = [argument.arg for argument in positional]
    found = list(zip(names, kinds, defaults, strict=True))
    if arguments.vararg:
        found.append((arguments.vararg.arg, "*", None))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append((argument.arg, "only by name", default and ast.unparse(default)))
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, "**", None))
    return found


def files(wing: str) -> dict[str, str]:
    folder = PACKAGE / wing
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.py")
    }


TORCH, KERAS = files("pytorch"), files("keras")


def exported(source: str) -> list[str]:
    """What ``__all__`` lists, sorted; nothing where there is none."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return sorted(ast.literal_eval(node.value))
    return []


#: What others may enter. A wing's inner rooms have twins too, but each is furnished as it needs.
ROOMS = ["datasets.py", *(f"{room}.py" for room in exported(TORCH["__init__.py"]))]


def test_both_wings_have_the_same_files() -> None:
    assert set(TORCH) == set(KERAS)


@pytest.mark.parametrize("room", ROOMS)
def test_both_wings_have_the_same_public_names_and_signatures(room: str) -> None:
    assert contract(TORCH[room]) == contract(KERAS[room])


@pytest.mark.parametrize("room", ["__init__.py", *ROOMS])
def test_both_wings_export_the_same_names(room: str) -> None:
    assert exported(TORCH[room]) == exported(KERAS[room])


ONE = "def step(rows, *, look=False): ...\nclass Probe:\n    def keys(self): ..."


@pytest.mark.parametrize(
    "other",
    [
        ONE.replace("step", "stride"),
        ONE.replace("rows", "batch"),
        ONE.replace("False", "True"),
        ONE.replace("*, ", ""),
        ONE.replace("rows,", "rows, /,"),
        ONE.replace("keys", "names"),
        ONE.replace("Probe", "Hook"),
        ONE + "\ndef more(): ...",
    ],
)
def test_contract_test_can_fail(other: str) -> None:
    assert contract(ONE) != contract(other)


def test_contract_looks_past_types_and_private_names() -> None:
    other = ONE.replace("rows", "rows: torch.Tensor") + "\ndef _own(): ..."
    assert contract(ONE) == contract(other)


# -- no skipped test in CI ------------------------------------------------------------------------

SKIP = "import pytest\ndef test_good(): pass\n@pytest.mark.skip\ndef test_skipped(): pass\n"
MODULE_SKIP = "import pytest\npytest.skip('no', allow_module_level=True)\n"
HARDWARE = SKIP.replace("@", "@pytest.mark.optional_hardware\n@")
EXPECTED = "import pytest\n@pytest.mark.xfail\ndef test_bad(): assert False\n"


@pytest.mark.parametrize(
    ("ci", "tests", "status"),
    [
        ("true", SKIP, 1),
        ("true", MODULE_SKIP, 1),
        ("true", HARDWARE, 0),
        ("true", EXPECTED, 0),
        ("", SKIP, 0),
    ],
    ids=["skip", "module", "hardware", "xfail", "outside CI"],
)
def test_a_skip_fails_in_ci(ci: str, tests: str, status: int, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text(tests)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stdout
    assert ("which CI does not allow" in done.stdout) == (status == 1)
