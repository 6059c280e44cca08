"""What all tests share: the wing as a fixture, and the rule that CI skips nothing.

Where the environment says ``CI=true``, a skipped test fails the session, because a test that
nobody runs proves nothing. ``@pytest.mark.optional_hardware`` marks the tests that a machine
without a GPU may skip.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest

from dlplay import frameworks

SKIPPED = pytest.StashKey[list[str]]()


@dataclass(frozen=True)
class Wing:
    """One of the two wings, loaded."""

    name: str
    rooms: ModuleType

    @property
    def title(self) -> str:
        return frameworks.title(self.name)


@pytest.fixture(params=frameworks.WINGS)
def wing(request: pytest.FixtureRequest) -> Wing:
    """Each test that takes it runs once for each wing."""
    return Wing(request.param, frameworks.load_wing(request.param))


@pytest.fixture
def runs_end() -> Iterator[None]:
    """No thread that trains may outlive the test."""
    import threading

    yield
    for thread in threading.enumerate():
        if thread.name == "dlplay-run":
            thread.join(timeout=20)
            assert not thread.is_alive(), "a run was left behind"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SKIPPED] = []
    config.addinivalue_line(
        "markers", "optional_hardware: needs a GPU; the only tests that CI may skip"
    )
    if os.environ.get("CI", "").lower() == "true":
        config.pluginmanager.register(_NoSkips(config.stash[SKIPPED]), "dlplay-no-skips")


class _NoSkips:
    """Collects what was skipped, and fails the session for it."""

    def __init__(self, skipped: list[str]) -> None:
        self._skipped = skipped

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        expected = hasattr(report, "wasxfail") or "optional_hardware" in report.keywords
        if report.skipped and not expected:
            self._skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._skipped and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._skipped:
            terminalreporter.section("skipped, which CI does not allow", red=True)
            for nodeid in self._skipped:
                terminalreporter.line(nodeid)
