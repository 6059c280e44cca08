"""Two frameworks in one process: every order of imports, each in a process of its own."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.machinery import PathFinder
from itertools import permutations
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from dlplay import frameworks

Done = subprocess.CompletedProcess[str]

LINES = {
    "dlplay": "import dlplay",
    "torch": "import torch",
    "tensorflow": "import tensorflow",
    "keras": "import keras; assert keras.backend.backend() == 'tensorflow'",
    "step": (
        "w = torch.ones(1, requires_grad=True); adam = torch.optim.Adam([w]); "
        "w.sum().backward(); adam.step()"
    ),
}
#: Where the crash is: PyPI builds for Linux, torch with triton. Looked up on the path itself, as
#: the guard may already keep triton from loading in the process of the tests.
CAN_CRASH = sys.platform == "linux" and PathFinder.find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not CAN_CRASH, reason="only torch with triton on Linux crashes")


def python(code: str, folder: Path | None = None, **environment: str) -> Done:
    """Run a script in a fresh Python, with the variables that frameworks read only as given."""
    clean = {key: value for key, value in os.environ.items() if key not in frameworks.ENVIRONMENT}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
    )


def script(order: tuple[str, ...]) -> str:
    return "\n".join([*(LINES[part] for part in order), "print('end')"])


# -- every order ----------------------------------------------------------------------------------

#: torch comes before its optimizer, and TensorFlow too: an optimizer that was made before it has
#: loaded triton in time, so of those orders one is enough. What is imported last cures nothing.
ORDERS = [
    order
    for order in permutations(("dlplay", "torch", "tensorflow", "step"))
    if order.index("torch") < order.index("step") == len(order) - 1
] + [("dlplay", "torch", "step", "tensorflow"), ("torch", "keras", "dlplay", "step")]
CRASHES = [("torch", "tensorflow", "step"), ("tensorflow", "torch", "step")]


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, ...], Future[Done]]:
    """What becomes of each order; as many at a time as there are cores."""
    pool = ThreadPoolExecutor(os.cpu_count())
    return {order: pool.submit(python, script(order)) for order in [*ORDERS, *CRASHES]}


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_every_order_is_safe(
    order: tuple[str, ...], outcomes: dict[tuple[str, ...], Future[Done]]
) -> None:
    done = outcomes[order].result()
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


@needs_triton
@pytest.mark.parametrize("order", CRASHES, ids=" ".join)
def test_without_dlplay_the_crash_is_real(
    order: tuple[str, ...], outcomes: dict[tuple[str, ...], Future[Done]]
) -> None:
    assert outcomes[order].result().returncode == -signal.SIGSEGV


@needs_triton
def test_triton_by_hand_after_tensorflow_gets_a_sentence() -> None:
    done = python("import dlplay, tensorflow\nimport triton")
    assert done.returncode == 1
    assert "import torch or triton first" in done.stderr


@pytest.mark.parametrize(
    "order",
    [("dlplay", "tensorflow", "torch", "step"), ("torch", "tensorflow", "dlplay", "step")],
    ids=" ".join,
)
def test_an_order_in_a_kernel(order: tuple[str, ...]) -> None:
    manager, client = start_new_kernel(startup_timeout=60)
    try:
        for part in order:
            reply = client.execute_interactive(LINES[part], timeout=120)
            assert reply["content"]["status"] == "ok", reply["content"]
        assert manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


# -- at no cost to a user of one framework --------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "others"),
    [("torch", {"tensorflow", "keras", "triton"}), ("tensorflow", {"torch", "triton"})],
)
def test_one_framework_loads_nothing_of_the_other(mine: str, others: set[str]) -> None:
    done = python(f"import sys, dlplay, {mine}; print({others!r} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr


def test_the_guard_is_set_once() -> None:
    before = list(sys.meta_path)
    frameworks.guard()
    assert sys.meta_path == before


# -- environment and notices, with a TensorFlow that takes no time --------------------------------

NOTICE = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
SAYS = f"""
import os
os.write(2, b"{NOTICE}\\n")
os.write(2, b"a line that matters\\n")
print([os.environ.get(name) for name in {list(frameworks.ENVIRONMENT)!r}])
"""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A folder with a package ``tensorflow`` that writes what the real one does, and more."""
    package = tmp_path / "tensorflow"
    package.mkdir()
    (package / "__init__.py").write_text(SAYS)
    return tmp_path


def test_notices_are_left_out_and_the_rest_is_passed_on(fake: Path) -> None:
    done = python("import dlplay, tensorflow", fake)
    assert (done.returncode, done.stderr) == (0, "a line that matters\n")
    without = python("import tensorflow", fake)
    assert NOTICE in without.stderr


def test_a_failing_import_shows_what_was_written(fake: Path) -> None:
    (fake / "tensorflow" / "__init__.py").write_text(SAYS + "raise ImportError('broken')")
    done = python("import dlplay, os, tensorflow", fake)
    assert done.returncode == 1
    assert done.stderr.startswith("a line that matters\nTraceback")
    assert done.stderr.endswith("ImportError: broken\n")


def test_standard_error_is_whole_after_a_failing_import(fake: Path) -> None:
    (fake / "tensorflow" / "__init__.py").write_text("raise ImportError")
    code = "import dlplay, os\ntry: import tensorflow\nexcept ImportError: os.write(2, b'here')"
    assert python(code, fake).stderr == "here"


def test_environment_is_set_before_tensorflow_reads_it(fake: Path) -> None:
    done = python("import dlplay, tensorflow", fake)
    assert done.stdout == f"{list(frameworks.ENVIRONMENT.values())}\n"


def test_what_the_user_has_set_wins(fake: Path) -> None:
    own = dict.fromkeys(frameworks.ENVIRONMENT, "own")
    assert python("import dlplay, tensorflow", fake, **own).stdout == f"{[*own.values()]}\n"


def test_importing_dlplay_alone_sets_nothing() -> None:
    code = f"import dlplay, os; print({set(frameworks.ENVIRONMENT)!r} & set(os.environ))"
    assert python(code).stdout == "set()\n"


# -- a backend or a framework that is not there ---------------------------------------------------

SAY = """
from dlplay.errors import DlplayError
try:
    {}
except DlplayError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("backend", "before"), [("jax", ""), ("torch", ""), ("torch", "import keras; ")]
)
def test_another_keras_backend_gets_a_sentence(backend: str, before: str) -> None:
    call = "frameworks.load_wing('keras')"
    done = python(
        f"{before}from dlplay import frameworks" + SAY.format(call), KERAS_BACKEND=backend
    )
    assert done.stdout.count("\n") == 1, done.stderr
    assert f"its {backend!r} backend" in done.stdout
    assert "KERAS_BACKEND=tensorflow" in done.stdout


#: Makes Python find some packages no more, as if they were not installed.
UNINSTALL = """
from importlib.machinery import PathFinder
real = PathFinder.find_spec
missing = {}
PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None:
        None if name.split(".")[0] in missing else real(name, path, target)
)
"""
TRAIN = """
import dlplay
last = dlplay.train(epochs=1, wings=({wing!r},)).wait()
assert last.state == "finished", last
assert dlplay.settings.Run().wings == ("pytorch", "keras")
"""


@cache
def without(packages: tuple[str, ...], wing: str, other: str) -> Done:
    """Train in one wing, then ask for both, in a Python that lacks the other framework."""
    both = SAY.format("dlplay.train(epochs=1).wait()")
    code = UNINSTALL.format(packages) + TRAIN.format(wing=wing) + both
    return python(code + f"\nassert not dlplay.frameworks.installed({other!r})")


MISSING = pytest.mark.parametrize(
    ("packages", "wing", "other"),
    [
        (("torch", "torchvision", "triton"), "keras", "pytorch"),
        (("keras", "tensorflow"), "pytorch", "keras"),
        (("tensorflow",), "pytorch", "keras"),
    ],
    ids=["no torch", "no keras", "no tensorflow"],
)


@MISSING
def test_one_framework_works_without_the_other(
    packages: tuple[str, ...], wing: str, other: str
) -> None:
    done = without(packages, wing, other)
    assert done.returncode == 0, done.stderr


@MISSING
def test_a_missing_framework_is_named_with_its_command(
    packages: tuple[str, ...], wing: str, other: str
) -> None:
    said = without(packages, wing, other).stdout
    assert said.count("\n") == 1
    assert said.startswith(f"{frameworks.title(other)} is not installed")
    assert frameworks.INSTALL[other] in said


@pytest.mark.parametrize("name", ["jax", "", None, "PyTorch"])
def test_a_name_that_is_no_wing_gets_a_sentence(name: str) -> None:
    with pytest.raises(frameworks.DlplayError, match=r"choose one of pytorch, keras\.$"):
        frameworks.load_wing(name)
