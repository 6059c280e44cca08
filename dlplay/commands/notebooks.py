"""Finds the course's notebooks, and copies them without ever losing a reader's work."""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from dlplay import resources
from dlplay.errors import DlplayError

#: Lies in the folder of copies, and holds the checksum of each file as it was copied.
MANIFEST = ".dlplay-manifest.json"


@dataclass(frozen=True)
class Copies:
    """What a copy did: the names of files that it wrote, and of those it kept as they were."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def source() -> Path:
    """The folder of the notebooks that came with dlplay; raises DlplayError without one."""
    try:
        return resources.folder("notebooks")
    except FileNotFoundError as error:
        raise DlplayError(str(error)) from error


def find(folder: Path, number: str) -> str:
    """The file name of the notebook with a number of two digits.

    Raises
    ------
    DlplayError
        Where there is none; the message lists those that there are.
    """
    found = {}
    for path in sorted(folder.glob("*.ipynb")):
        if match := re.match(r"([0-9]{2})-(.+)", path.stem):
            found[match[1]] = path.name
    if number not in found:
        names = ", ".join(Path(name).stem for name in found.values()) or "none at all"
        raise DlplayError(f"There is no notebook {number}; there are: {names}.")
    return found[number]


def copy(origin: Path, target: Path) -> Copies:
    """Copy all notebooks into a folder, which is made where it is missing.

    A file that is not there yet is written, and one that is as an earlier copy left it is brought
    up to date. Any other file in the way is the reader's, and is kept.

    Raises
    ------
    DlplayError
        Where the folder cannot be written.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        return _copy_all(origin, target)
    except OSError as error:
        raise DlplayError(
            f"The notebooks cannot be copied to {str(target)!r} ({error.strerror or error}):"
            " choose a folder of yours with --folder DIR."
        ) from error


def _copy_all(origin: Path, target: Path) -> Copies:
    copied = _read_manifest(target)
    written, kept = [], []
    for path in _files(origin):
        name = path.relative_to(origin).as_posix()
        new, place = path.read_bytes(), target / name
        old = _checksum(place.read_bytes()) if place.exists() else None
        if old not in (None, _checksum(new), copied.get(name)):
            kept.append(name)
            continue
        if old != _checksum(new):
            _write(place, new)
            written.append(name)
        if copied.get(name) != _checksum(new):
            copied[name] = _checksum(new)
            _write(target / MANIFEST, json.dumps(copied, indent=2).encode())
    return Copies(tuple(written), tuple(kept))


def _files(origin: Path) -> list[Path]:
    return sorted(
        path
        for path in origin.rglob("*")
        if path.is_file() and not any(part[0] in "._" for part in path.relative_to(origin).parts)
    )


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(target: Path) -> dict[str, str]:
    """What was copied here before; an unreadable list counts as none, so that all is kept."""
    try:
        listed = json.loads((target / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return listed if isinstance(listed, dict) else {}


def _write(place: Path, content: bytes) -> None:
    """Write a whole file or, on a full disk, none: the file that was there stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
