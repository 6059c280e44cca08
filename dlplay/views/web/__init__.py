"""The parts of the views that run in the page: ES modules and style sheets, without a build.

anywidget loads one module for a widget. So ``module`` joins a file with those that it imports,
each once, those first that others need; the files themselves stay ordinary ES modules.
"""

import re
from pathlib import Path

_HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|function|class)", re.MULTILINE)


def module(entry: str) -> str:
    """The module of a widget: the file and all that it imports, as one text."""
    parts: dict[str, str] = {}

    def collect(name: str) -> None:
        if name in parts:
            return
        text = (_HERE / name).read_text(encoding="utf-8")
        for needed in _IMPORT.findall(text):
            collect(needed)
        text = _IMPORT.sub("", text)
        parts[name] = text if name == entry else _EXPORT.sub("", text)

    collect(entry)
    return "\n".join(parts.values())


def style(name: str) -> str:
    """The text of a style sheet."""
    return (_HERE / name).read_text(encoding="utf-8")
