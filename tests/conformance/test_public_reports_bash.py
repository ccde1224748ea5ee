"""Faults that users met in other tool kits when commands ran, and inputs close to them."""

# ruff: noqa: N802 - a test is named after the report that it stands for

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.conformance.places import refused, said, text
from toolkit.abort import AbortController
from toolkit.calls import ToolCall
from toolkit.runner import ToolRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.conformance.places import Place

pytestmark = [pytest.mark.anyio, pytest.mark.needs("shell")]

#: Prints how many processes of this machine hold a text in their command line. The text is
#: given with one letter in brackets, so that the counting itself is not counted.
COUNT = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o '{}' | wc -l"


_numbers = itertools.count(1)


def unique_sleep() -> str:
    """Return a command that no other process of the machine runs, or will run."""
    return f"sleep 47{os.getpid()}.{next(_numbers):05}"


async def alive(place: Place, marker: str) -> int:
    """Return how many processes have `marker` in their command line."""
    bracketed = f"{marker[:-1]}[{marker[-1]}]"
    return int(said(await place.run("bash", command=COUNT.format(bracketed))).strip())


async def gone(place: Place, marker: str) -> bool:
    """Return True once no process has `marker`, False after five seconds."""
    with anyio.move_on_after(5):
        while await alive(place, marker):
            await anyio.sleep(0.05)
        return True
    return False


@pytest.mark.parametrize(
    "command",
    [
        "sleep 30 & echo done",
        "(while :; do echo tick; sleep 0.2; done) & echo done",
        "nohup sleep 30 >/dev/null 2>&1 & echo done",
        "setsid sleep 30 & echo done",
        "(sleep 30; echo never) & disown; echo done",
        "sleep 30 2>&1 | cat & echo done",
    ],
)
async def test_B09_a_background_child_does_not_hold_the_call(place: Place, command: str) -> None:
    message = await place.run("bash", command=command, timeout=20)
    assert "done" in said(message)
    assert message.duration_ms < 5000
    assert said(await place.run("bash", command="echo next")).strip() == "next"


@pytest.mark.needs("proc")
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            "bash -c 'trap \"\" TERM; sleep {t} & sleep {t}'", marks=pytest.mark.needs("bash")
        ),
        "trap '' TERM; sleep {t}",
        "setsid sleep {t} & sleep {t}",
        "(sleep {t} &) ; (setsid sh -c 'sleep {t} & sleep {t}' &) ; sleep {t}",
        "env -i setsid sleep {t} & wait",
        pytest.param("nohup sleep {t} & wait", marks=pytest.mark.needs("nohup")),
    ],
)
async def test_B11_a_timeout_ends_every_descendant(place: Place, command: str) -> None:
    marker = unique_sleep()
    seen: list[int] = []
    async with anyio.create_task_group() as group:

        async def look() -> None:
            with anyio.move_on_after(10):
                while not seen or not seen[-1]:
                    seen.append(await alive(place, marker))

        group.start_soon(look)
        message = await place.run(
            "bash", command=command.format(t=marker.removeprefix("sleep ")), timeout=1.5
        )
    assert seen[-1] > 0
    told = refused(message, "timeout")
    assert "1.5" in told
    assert await gone(place, marker)


@pytest.mark.parametrize(
    "command",
    [
        "head -c 250000 /dev/zero | tr '\\0' x; echo END-MARKER",
        "head -c 250000 /dev/zero | tr '\\0' x; printf END-MARKER",
        "echo first; head -c 250000 /dev/zero | tr '\\0' x; printf 'END-MARKER\\n\\n'",
        "head -c 60000 /dev/zero | tr '\\0' x; echo; printf 'short END-MARKER'",
    ],
    ids=["newline at the end", "none", "blank line after", "short last line"],
)
async def test_B14_a_long_line_shows_its_tail(place: Place, command: str) -> None:
    message = await place.run("bash", command=command)
    shown = said(message)
    assert "END-MARKER" in shown
    assert "(no output)" not in shown
    assert 10 < len(shown.encode()) <= 50 * 1024 + 2000
    assert message.details["truncation"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (r"printf '\xe2'; sleep 0.3; printf '\x89'; sleep 0.3; printf '\xa4\n'", "\u2264"),
        (r"printf '\xf0\x9f'; sleep 0.3; printf '\x98\x80'", "\U0001f600"),
        (r"printf 'a\xc3'; sleep 0.2; printf '\xa9\xc3'; sleep 0.2; printf '\xbc'", "aéü"),
        (r"printf 'cut \xe2\x89'", "cut \ufffd"),
        (r"printf 'bad \xe9 byte'", "bad \ufffd byte"),
    ],
    ids=["three bytes", "four bytes", "two bytes", "cut at the end", "never a character"],
)  # fmt: skip
async def test_B16_a_character_in_pieces_stays_one(
    place: Place, command: str, expected: str
) -> None:
    assert said(await place.run("bash", command=command)).strip() == expected


async def test_B16_many_characters_over_many_chunks_stay_whole(place: Place) -> None:
    line = "\u3042" * 100
    command = f"i=0; while [ $i -lt 400 ]; do echo {line}; i=$((i+1)); done"
    shown = said(await place.run("bash", command=command))
    assert "\ufffd" not in shown
    assert line in shown


@pytest.mark.parametrize("size", [131_071, 131_072, 200_000, 2_000_000])
async def test_B20_a_command_over_the_argument_limit_runs(place: Place, size: int) -> None:
    body = "x" * size
    message = await place.run(
        "bash", command=f"cat > big.txt <<'EOF'\n{body}\nEOF\nwc -c < big.txt"
    )
    assert said(message).strip() == str(size + 1)
    assert await place.get("big.txt") == f"{body}\n".encode()


async def test_B20_a_command_over_the_stated_limit_is_refused_by_name(place: Place) -> None:
    message = await place.run("bash", command=f"touch made; : {'x' * (11 << 20)}")
    told = refused(message)
    assert "command" in told
    assert await place.names() == []


@pytest.mark.parametrize(
    ("name", "code"), [("KILL", 137), ("TERM", 143), ("SEGV", 139), ("HUP", 129), ("INT", 130)]
)
async def test_B24_an_end_by_signal_is_an_error(place: Place, name: str, code: int) -> None:
    told = refused(await place.run("bash", command=f"echo before; kill -{name} $$"), "failed")
    assert "before" in told
    assert f"SIG{name}" in told
    assert str(code) in told
    assert f"-{code - 128}" not in told


async def test_B24_a_killed_child_is_the_shells_business(place: Place) -> None:
    shown = said(await place.run("bash", command="sh -c 'kill -KILL $$'; echo rc=$?"))
    assert "rc=137" in shown


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat; echo rc=$?", "rc=0"),
        ("read -p 'pw: ' x; echo got=$x", "got="),
        pytest.param(
            "python3 -c 'input()' 2>&1; echo rc=$?", "EOFError", marks=pytest.mark.needs("python3")
        ),
        ("ssh-keygen 2>&1 < /dev/stdin | head -c 0; echo over", "over"),
        ("sort; wc -c; echo over", "over"),
    ],
)
async def test_B25_what_reads_input_sees_its_end(place: Place, command: str, shown: str) -> None:
    message = await place.run("bash", command=command, timeout=20)
    assert shown in text(message)
    assert message.error_kind != "timeout"


@pytest.mark.parametrize(
    "command",
    ["yes | head -c 30000000", "head -c 30000000 /dev/zero | tr '\\0' x",
     "yes $(seq 1 50) | head -c 30000000"],
    ids=["short lines", "one line", "long lines"],
)  # fmt: skip
async def test_B26_large_output_is_cut_with_its_totals(place: Place, command: str) -> None:
    message = await place.run("bash", command=command)
    shown = said(message)
    assert len(shown.encode()) <= 50 * 1024 + 2000
    assert "28.6" in shown or "30000000" in shown.replace(",", "")
    assert message.details["truncation"]


@pytest.mark.parametrize("command", ["yes", "yes $(seq 1 2000)", "cat /dev/zero", "yes ''"])
async def test_B27_fast_output_starves_nobody(place: Place, command: str) -> None:
    await place.put("f.txt", b"quick\n")
    updates: list[Any] = []
    waited: list[float] = []
    calls = [ToolCall(id="flood", name="bash", arguments={"command": command, "timeout": 1})]
    async with (
        ToolRunner(place.tools(), listeners=(updates.append,)) as runner,
        anyio.create_task_group() as group,
    ):

        async def read_meanwhile() -> None:
            await anyio.sleep(0.2)
            for number in range(5):
                call = ToolCall(id=f"read-{number}", name="read", arguments={"path": "f.txt"})
                began = anyio.current_time()
                [message] = await runner.run([call])
                waited.append(anyio.current_time() - began)
                assert "quick" in said(message)

        group.start_soon(read_meanwhile)
        began = anyio.current_time()
        [flood] = await runner.run(calls)
        took = anyio.current_time() - began
    refused(flood, "timeout")
    assert took < 8
    assert max(waited) < 2
    assert len(updates) < 100


@pytest.mark.parametrize("after", [0.0, 0.001, 0.003, 0.01, 0.3])
async def test_B38_cancelling_gets_out_and_leaves_nothing(place: Place, after: float) -> None:
    marker = unique_sleep()
    with anyio.move_on_after(after) as scope:
        await place.run("bash", command=marker)
    assert scope.cancelled_caught
    assert await gone(place, marker)


async def test_B38_a_time_limit_around_the_run_is_the_callers(place: Place) -> None:
    marker = unique_sleep()
    with pytest.raises(TimeoutError), anyio.fail_after(0.5):
        await place.run("bash", command=f"setsid {marker} & {marker}")
    assert await gone(place, marker)


async def test_B38_an_abort_is_a_message(place: Place) -> None:
    marker = unique_sleep()
    controller = AbortController()
    async with anyio.create_task_group() as group:

        async def abort() -> None:
            await anyio.sleep(0.3)
            controller.abort("enough")

        group.start_soon(abort)
        [message] = await place.batch(("bash", {"command": marker}), signal=controller.signal)
    refused(message, "aborted")
    assert await gone(place, marker)


@pytest.mark.parametrize(
    "command",
    [
        "env",
        "cat /proc/$PPID/environ | tr '\\0' '\\n'",
        "tr '\\0' ' ' < /proc/self/cmdline; tr '\\0' '\\n' < /proc/self/environ",
        "bash -c 'export -p; set'",
    ],
)
async def test_B55_secrets_of_the_host_do_not_reach_a_command(
    open_place: Callable[..., AbstractAsyncContextManager[Place]],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.setenv("X_API_KEY", "s3cr3t-77")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t-77")
    async with open_place() as place:
        shown = text(await place.run("bash", command=command))
        assert "s3cr3t-77" not in shown
        assert "PATH" in text(await place.run("bash", command="env"))


async def test_B55_a_configured_value_is_on_no_command_line(
    open_place: Callable[..., AbstractAsyncContextManager[Place]],
) -> None:
    async with open_place(env={"TOKEN": "s3cr3t-88"}) as place:
        assert "s3cr3t-88" in said(await place.run("bash", command='echo "$TOKEN"'))
        command = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 's3cr3t-8[8]'"
        assert text(await place.run("bash", command=command)).split()[0] == "0"
        told = refused(await place.run("bash", command="exit 3"))
        assert "s3cr3t-88" not in told


@pytest.mark.parametrize(
    "value", ["b'ar $x", '"; touch PWNED; "', "two\nlines", "caf\u00e9 \u6f22", "$(id)`id`"]
)
async def test_B74_configured_variables_arrive_untouched(
    open_place: Callable[..., AbstractAsyncContextManager[Place]], value: str
) -> None:
    async with open_place(env={"FOO": value}) as place:
        shown = said(await place.run("bash", command='printf "%s|" "$FOO"'))
        assert shown.rstrip("\n") == f"{value}|"
        assert not await place.exists("PWNED")


@pytest.mark.parametrize("state", ["gone", "a file", "back again"])
async def test_B76_a_bad_folder_is_blamed_by_name(place: Place, state: str) -> None:
    await place.remove("")
    if state == "a file":
        await place.put("", b"now a file")
    message = await place.run("bash", command="echo x")
    told = refused(message)
    assert place.cwd in told
    assert "not found" not in told.replace("no such file", "").lower() or "bash" not in told
    if state == "a file":
        await place.remove("")
    await place.mkdir("")
    assert said(await place.run("bash", command="echo x")).strip() == "x"


@pytest.mark.parametrize(
    ("command", "expected"),
    [("exit 3", 3), ("true", 0), ("false", 1), ("exit 255", 255)],
)
async def test_B79_the_exit_code_is_always_known(place: Place, command: str, expected: int) -> None:
    for _ in range(5):
        for message in await place.batch(*[("bash", {"command": command})] * 10):
            assert message.is_error is (expected != 0)
            if expected:
                assert str(expected) in text(message)


async def test_B92_many_commands_and_a_read_at_once(place: Place) -> None:
    await place.put("f.txt", b"quick\n")
    calls = [("bash", {"command": "sleep 1; echo over"})] * 40 + [("read", {"path": "f.txt"})]
    messages = await place.batch(*calls, max_concurrency=64)
    assert all("over" in said(message) for message in messages[:-1])
    assert messages[-1].duration_ms < 3000
    assert max(message.duration_ms for message in messages) < 15_000


@pytest.mark.parametrize(
    ("character", "width"), [("\u3042", 100), ("\u00e9", 100), ("\U0001f600", 30), ("x\u3042", 7)]
)
async def test_B102_limits_are_bytes_and_cuts_fall_between_characters(
    place: Place, character: str, width: int
) -> None:
    await place.put("line", character * width + "\n")
    await place.put("rest", character * width * 20)
    command = (
        'l=$(cat line); i=0; while [ $i -lt 600 ]; do echo "$l"; i=$((i+1)); done; cat rest rest'
    )
    message = await place.run("bash", command=command)
    shown = said(message)
    body = "\n".join(line for line in shown.split("\n") if set(line) <= set(character))
    assert 0 < len(body.encode()) <= 50 * 1024
    assert "\ufffd" not in shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (r"p 1%%\rp 50%%\rp 100%%\n", "p 100%"),
        (r"\033[31mred\033[0m \033[?25l\033]0;t\007ok\r\n", "red ok"),
        (r"\000z\n", "z"),
        (r"one\r\ntwo\r\n", "one\ntwo"),
        (r"\033]8;;http://x\033\\link\033]8;;\033\\\n", "link"),
        (r"a\033[2Kb\033(Bc\n", "abc"),
    ],
    ids=["progress", "colour and title", "nul", "crlf", "hyperlink", "erase and charset"],
)
async def test_B103_what_a_terminal_would_eat_is_not_shown(
    place: Place, printed: str, shown: str
) -> None:
    told = said(await place.run("bash", command=f"printf '{printed}'"))
    assert told.strip() == shown
    assert not re.search(r"[\x00\x1b\x07]", told)
