"""Fixtures that every test may use."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Generator

# How long an example takes says more about the machine than about the code. In CI a failure must
# come from the change at hand: new examples are looked for at home.
hypothesis.settings.register_profile(
    "remotehands",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("remotehands")

pytest_plugins = ["tests.compose", "tests.programs", "tests.sshd", "tests.servers"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run each async test under both event loops."""
    return str(request.param)


class WholeFiles(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each process whole files, so that heavy fixtures are built once.

    A file of the conformance suite is one for each target and event loop: on all of them together
    it would outlast everything else.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        target = re.search(r"\[([a-z-]+)-(asyncio|trio)\b", test)
        return f"{file} {target[0]}" if target and "conformance" in file else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles:
    """Hand tests out as above."""
    return WholeFiles(config, log)


#: Parts of the reasons for a skip that a complete machine gives none of.
_MISSING = (
    "no ripgrep", "oracle", "not installed", "no docker engine", "cannot mount", "not allowed here",
    "is open to other users", "starts no container", "services up",
)  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip for want of a program or an engine into a failure where all should be there."""
    report = yield
    if report.skipped and os.environ.get("CI") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if any(part in reason.lower() for part in _MISSING):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid}: a complete machine skips nothing: {reason}"
    return report
