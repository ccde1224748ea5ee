"""Nothing that a command started outlives it, wherever it runs.

What runs in a container is counted there, by execs of their own through /proc; also what was
started over SSH, by whatever user.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.conformance.targets import TARGETS
from tests.end_to_end.driving import Run, driving
from tests.end_to_end.processes import command_lines, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers import Server

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts through /proc"),
    pytest.mark.timeout(180),
]

#: Text with its marker as {m}, and how many processes must be seen to carry it; any sh runs them.
COMMANDS = {
    "sleep": ("sleep {m}", 1),
    "ignores TERM": ("trap '' TERM; sleep {m} & sh -c 'sleep {m} & wait' & wait", 2),
    "setsid": ("setsid sleep {m} & wait", 1),
    "double fork": ("(sleep {m} &); (sh -c 'setsid sleep {m} &' &); sleep {m}", 3),
    "storm": ("i=0; while [ $i -lt 100 ]; do sleep {m} & i=$((i+1)); done; wait", 100),
    # Not `yes`: busybox runs that in its shell's own process, which shows no marker.
    "flood": ("sh -c 'while :; do echo flood; done' {m}", 1),
}
BACKGROUND = {
    "sleep": ("sleep {m} & echo hi", 1),
    "ignores HUP": ("(trap '' HUP; sleep {m} >/dev/null 2>&1 &); echo hi", 1),
    "double fork": ("(sh -c 'setsid sleep {m} &' &); echo hi", 1),
}
#: What leaves its session and its environment; then its parent ends, or has ended before.
HIDDEN = {
    "scrubbed": ("env -i setsid sh -c 'trap \"\" TERM HUP; sleep {m} & wait' & wait", 1),
    "hidden": ("(env -i setsid sh -c 'sleep {m} & wait' &); sleep {m}", 3),
}

_BY_SSH = ("sshd_program", "compose_servers")
_ALL_COMMAND_LINES = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"
#: Programs that lead somewhere, and containers.
_PLACES = [name for name, target in TARGETS.items() if target.fixture not in ("", *_BY_SSH)]
#: Who logs in over SSH, and whom everything then runs as; "" for who has logged in.
_LOGINS = {
    "ssh": ("", ""),
    "sshd": ("user", ""),
    "sshd as root who becomes a user": ("root", "user"),
    "sshd-minimal": ("user", ""),
    "sshd-minimal as root": ("root", ""),
}


@dataclass(frozen=True)
class Elsewhere:
    """A target: its URL, and how to see what runs there without the toolkit."""

    url: str
    look: Callable[[], list[str]]


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Elsewhere]:
    """Give a target of the conformance suite's table, or skip with its reason."""
    if request.param in _LOGINS:
        yield from _over_ssh(request)
        return
    target = TARGETS[request.param]
    given = request.getfixturevalue(target.fixture)
    if isinstance(given, dict):
        container, api = given[request.param], request.getfixturevalue("api")
        yield Elsewhere(f"docker://{container}", lambda: _execute(api, container).splitlines())
    else:
        yield Elsewhere(f"command:{shlex.join(given)}", command_lines)


def _over_ssh(request: pytest.FixtureRequest) -> Iterator[Elsewhere]:
    login, become = _LOGINS[request.param]
    if not login:
        config = request.getfixturevalue("sshd").config(name="kill_matrix")
        yield Elsewhere(f"ssh://box/tmp?config={quote(config)}", command_lines)
        return
    server: Server = request.getfixturevalue("compose_servers")[request.param.split()[0]]
    user = server.add_user()
    try:
        config = server.config(user if login == "user" else login)
        then = f"&user={user}" if become else ""
        yield Elsewhere(f"ssh://box/tmp?config={quote(config)}{then}", server.command_lines)
    finally:
        server.remove_user(user)


def _execute(api: Any, container: str, command: str = _ALL_COMMAND_LINES) -> str:
    created = api.exec_create(container, ["sh", "-c", command])
    return str(api.exec_start(created["Id"]).decode(errors="replace"))


def _everywhere(test: str) -> pytest.MarkDecorator:
    """Return the mark that runs a test on all these targets, expecting what is declared."""
    parameters = []
    for name in [*_PLACES, *_LOGINS]:
        reason = TARGETS[name.split()[0]].differs.get(test)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        parameters.append(pytest.param(name, id=name, marks=marks))
    return pytest.mark.parametrize("elsewhere", parameters, indirect=True)


def _drive(elsewhere: Elsewhere, way: str, commands: dict[str, tuple[str, int]]) -> Any:
    return driving("asyncio", way, commands, elsewhere.url, elsewhere.look)


@_everywhere("test_the_end_of_a_call_is_the_end_of_its_processes_there")
def test_the_end_of_a_call_is_the_end_of_its_processes_there(elsewhere: Elsewhere) -> None:
    """Looking is an exec of its own each time: none is held up by the kill."""
    with _drive(elsewhere, "stop", COMMANDS) as run:
        run.see_all()
        run.go()
        assert run.none_left(), run.counts()
        assert [run.next()["kind"] for _ in COMMANDS] == ["aborted"] * len(COMMANDS)
        assert run.next()["over"]
        assert "still working" in run.next()["after"]
        assert run.next() == {"closed": True}
        assert run.process.wait(20) == 0


@_everywhere("test_our_own_death_ends_everything_there")
def test_our_own_death_ends_everything_there(elsewhere: Elsewhere) -> None:
    with _drive(elsewhere, "kill", COMMANDS) as run:
        run.see_all()
        run.process.kill()
        run.process.wait()
        _ends(run)


@_everywhere("test_background_processes_end_with_the_backend_there")
def test_background_processes_end_with_the_backend_there(elsewhere: Elsewhere) -> None:
    with _drive(elsewhere, "background", BACKGROUND) as run:
        for _ in BACKGROUND:
            assert run.next()["kind"] is None
        assert run.next()["over"]
        assert "still working" in run.next()["after"]
        run.see_all()
        run.process.kill()
        _ends(run)


@_everywhere("test_a_process_that_hides_ends_too")
def test_a_process_that_hides_ends_too(elsewhere: Elsewhere) -> None:
    with _drive(elsewhere, "stop", HIDDEN) as run:
        run.see_all()
        run.go()
        assert [run.next()["kind"] for _ in HIDDEN] == ["aborted"] * len(HIDDEN)
        assert run.none_left(), run.counts()


def _ends(run: Run) -> None:
    assert wait_until(lambda: not any(run.counts().values()), 15), run.counts()
