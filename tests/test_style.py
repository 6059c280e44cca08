"""The project's texts: links that lead somewhere, and nothing that has no place in them."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")

COMMANDS = ["pip install -e . && dlplay lab", 'pip install -e ".[test]" && dlplay test']

#: Paths of one machine, and hosts of package registries: neither is anybody else's.
FORBIDDEN = re.compile(
    r"/(?:root|home)/[a-z]|/tmp/[a-z]|pypi\.(?:org|python)|pythonhosted|registry\.npmjs"
    r"|download\.pytorch|deb\.debian"
)


def tracked(*patterns: str) -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in done.stdout.split("\0") if name]


def anchors(path: Path) -> set[str]:
    """The anchors that a Markdown file's headings make, as GitHub does."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> list[str]:
    """The relative links of a Markdown file that lead to nothing."""
    broken = []
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("path", tracked("*.md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(path: Path) -> None:
    assert broken_links(path) == []


def test_link_check_can_fail(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](#a-title) [b](#no-title) ![c](no.png) [d](https://x.org)\n")
    assert broken_links(page) == ["#no-title", "no.png"]


def test_no_file_names_a_machine_or_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tracked()
        if path.is_file() and path != Path(__file__)
        for match in FORBIDDEN.finditer(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert found == []


def test_readme_has_the_two_commands() -> None:
    blocks = re.findall(r"^```\n(.*?)\n```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert blocks[:2] == COMMANDS


def test_readme_lists_the_notebooks_that_there_are() -> None:
    listed = re.findall(r"\]\((notebooks/[^)]+\.ipynb)\)", (ROOT / "README.md").read_text())
    assert listed == [str(path.relative_to(ROOT)) for path in tracked("notebooks/*.ipynb")]
