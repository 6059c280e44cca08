"""The built wheel: what it carries, and that it works where it is all there is of dlplay."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from lab_process import running

ROOT = Path(__file__).resolve().parents[1]
ALONE = {**os.environ, "PYTHONPATH": ""}  # so that no other dlplay is found first
LAB_SETTINGS = "dlplay/jupyter/labconfig/default_setting_overrides.json"


def tracked(folder: str) -> set[str]:
    """The files of a folder that belong to the project."""
    done = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines())


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--no-isolation"]
    subprocess.run(
        [*command, "--outdir", str(folder)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; its other packages are the test environment's.

    A ``.pth`` file adds their folder, but reads no ``.pth`` file in there: an editable dlplay
    stays out.
    """
    home = tmp_path_factory.mktemp("wheel") / "env"
    venv.create(home, with_pip=False)
    paths = {"base": str(home), "platbase": str(home)}
    site = Path(sysconfig.get_path("purelib", "venv", paths))
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    python = sysconfig.get_path("scripts", "venv", paths)
    command = [sys.executable, "-m", "pip", "--python", python_in(Path(python)), "install"]
    subprocess.run([*command, "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    return Path(python)


def python_in(scripts: Path) -> str:
    return str(scripts / ("python.exe" if os.name == "nt" else "python"))


def test_wheel_carries_the_course_and_its_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("notebooks", "data"):
        files = tracked(folder)
        assert files
        carried = {f"dlplay/_{name}" for name in files}
        assert carried <= names
    assert LAB_SETTINGS in names


def test_wheel_carries_every_file_of_the_package(wheel: Path) -> None:
    missing = tracked("dlplay") - set(zipfile.ZipFile(wheel).namelist())
    assert not missing


def test_wheel_carries_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"dlplay"}
    assert not [name for name in names if "__pycache__" in name or "checkpoint" in name]


def test_wheel_has_licence_and_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (licence,) = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert b"BSD 3-Clause" in archive.read(licence)
    (entries,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert b"dlplay = dlplay.cli:main" in archive.read(entries)


def test_source_distribution_carries_the_project(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md"} <= names
    assert tracked("notebooks") | tracked("data") | tracked("dlplay") <= names


def test_lab_settings_are_json() -> None:
    settings = json.loads((ROOT / LAB_SETTINGS).read_text())
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


def test_installed_wheel_finds_its_own_files(installed: Path, tmp_path: Path) -> None:
    code = (
        "import dlplay; from dlplay import resources; print(dlplay.__file__);"
        "print(resources.folder('notebooks')); print(resources.in_checkout())"
    )
    done = subprocess.run(
        [python_in(installed), "-c", code],
        cwd=tmp_path,
        env=ALONE,
        capture_output=True,
        text=True,
        check=True,
    )
    package, folder, in_checkout = done.stdout.splitlines()
    assert Path(package).is_relative_to(installed.parent)
    assert Path(folder) == Path(package).parent / "_notebooks"
    assert in_checkout == "False"


def test_lab_from_a_wheel_copies_the_notebooks(
    wheel: Path, installed: Path, tmp_path: Path
) -> None:
    shared = Path(sysconfig.get_path("data")) / "share" / "jupyter"  # JupyterLab's own pages
    environment = {
        "JUPYTERLAB_DIR": str(shared / "lab"),
        "JUPYTER_PATH": str(shared),
        "PYTHONPATH": "",
    }
    command = [str(installed / "dlplay")]
    work = tmp_path / "work"
    work.mkdir()
    with running(tmp_path, command=command, environment=environment, folder=work) as server:
        assert server.notebook == "00-start.ipynb"
        assert server.interrupt() == 0
    copies = {path.name for path in (work / "dlplay-notebooks").glob("*.ipynb")}
    carried = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    assert copies == {path.name for path in carried if path.suffix == ".ipynb"}


def test_test_from_a_wheel_asks_for_a_checkout(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [installed / "dlplay", "test"], cwd=tmp_path, env=ALONE, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "needs a checkout" in done.stderr
