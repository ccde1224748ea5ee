"""What every backend promises for running commands, and what the bash tool makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from operations import ExecResult, OutputSnapshot, PathNotDirectory, PathNotFound
from tests.conformance.places import refused, said
from toolkit.abort import AbortController

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.conformance.places import Place

pytestmark = [pytest.mark.anyio, pytest.mark.needs("commands")]


async def execute(place: Place, command: str, **options: Any) -> tuple[bytes, ExecResult]:
    """Run a command by the plain operation and return its output and result."""
    chunks: list[bytes] = []
    with anyio.fail_after(60):
        result = await place.backend.exec(
            command, **{"cwd": place.cwd, "on_data": chunks.append, **options}
        )
    return b"".join(chunks), result


async def watch(
    place: Place, command: str, **options: Any
) -> tuple[list[OutputSnapshot], ExecResult]:
    """Run a command by the tail operation and return its snapshots and result."""
    snapshots: list[OutputSnapshot] = []
    limits = {"tail_bytes": 1000, "keep_over_bytes": 5000, "keep_over_lines": 3000}
    with anyio.fail_after(60):
        result = await place.backend.exec_tail(
            command,
            **{"cwd": place.cwd, "on_snapshot": snapshots.append, **limits, **options},
        )
    return snapshots, result


class At:
    """A stop signal that a test fires."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def fire(self, *_: object) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()


# Operations ------------------------------------------------------------------------------


async def test_output_and_exit_code_are_data(place: Place) -> None:
    output, result = await execute(place, "echo hi; exit 3")
    assert output == b"hi\n"
    assert (result.ended, result.exit_code, result.signal) == ("exited", 3, None)
    assert (result.total_bytes, result.total_lines) == (3, 1)
    assert result.killed == "none"
    assert result.background == 0


async def test_success_is_zero(place: Place) -> None:
    output, result = await execute(place, "true")
    assert (output, result.ended, result.exit_code) == (b"", "exited", 0)


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15)])
async def test_a_signal_is_told_by_number(place: Place, name: str, number: int) -> None:
    output, result = await execute(place, f"echo before; kill -{name} $$")
    assert output == b"before\n"
    assert (result.ended, result.signal, result.exit_code) == ("signalled", number, None)


async def test_stdin_is_at_its_end(place: Place) -> None:
    output, result = await execute(place, "cat", timeout_s=20)
    assert (output, result.ended, result.exit_code) == (b"", "exited", 0)


async def test_the_command_runs_in_its_folder(place: Place) -> None:
    path = await place.mkdir("a folder")
    output, _ = await execute(place, "pwd -P", cwd=path)
    assert output.decode().strip().endswith("/a folder")


@pytest.mark.parametrize("value", ["plain", 'b\'ar $x "q" `t`\\', "two\nlines", ""])
async def test_variables_arrive_as_they_are(place: Place, value: str) -> None:
    output, _ = await execute(place, 'printf %s "$FOO"', env={"FOO": value})
    assert output.decode() == value


async def test_variables_of_the_backend_arrive(
    open_place: Callable[..., AbstractAsyncContextManager[Place]],
) -> None:
    async with open_place(env={"FOO": "b'ar $x"}) as place:
        assert (await execute(place, 'printf %s "$FOO"'))[0] == b"b'ar $x"
        assert (await execute(place, 'printf %s "$FOO"', env={"FOO": "over"}))[0] == b"over"


async def test_a_folder_that_is_not_there_is_named(place: Place) -> None:
    await place.put("file")
    with pytest.raises(PathNotFound) as caught:
        await execute(place, "true", cwd=place.path("nope"))
    assert caught.value.path == place.path("nope")
    with pytest.raises(PathNotDirectory):
        await execute(place, "true", cwd=place.path("file"))


async def test_the_time_limit_ends_the_command_and_keeps_its_output(place: Place) -> None:
    output, result = await execute(place, "echo before; sleep 60", timeout_s=0.5)
    assert output == b"before\n"
    assert result.ended == "timeout"
    assert result.exit_code is None
    assert result.killed == "killed"
    assert result.survivors == ()


async def test_stop_ends_the_command_and_keeps_its_output(place: Place) -> None:
    stop = At()
    chunks: list[bytes] = []

    def on_data(chunk: bytes) -> None:
        chunks.append(chunk)
        stop.fire()

    with anyio.fail_after(60):
        result = await place.backend.exec(
            "echo before; sleep 60", cwd=place.cwd, on_data=on_data, stop=stop
        )
    assert b"".join(chunks) == b"before\n"
    assert (result.ended, result.killed) == ("stopped", "killed")


async def test_a_stop_before_the_start_ends_at_once(place: Place) -> None:
    stop = At()
    stop.fire()
    _, result = await execute(place, "sleep 60", stop=stop)
    assert result.ended == "stopped"


async def test_cancelling_lets_the_cancellation_through(place: Place) -> None:
    with anyio.fail_after(30):
        with anyio.move_on_after(0.3) as scope:
            await execute(place, "sleep 60")
        assert scope.cancelled_caught
    assert (await execute(place, "echo hi"))[0] == b"hi\n"


async def test_commands_run_side_by_side(place: Place) -> None:
    outputs: list[bytes] = []

    async def one() -> None:
        outputs.append((await execute(place, "sleep 0.3; echo late"))[0])

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one)
    assert outputs == [b"late\n"] * 20


async def test_snapshots_hold_the_tail_and_the_totals(place: Place) -> None:
    snapshots, result = await watch(place, "seq 1 5000")
    whole = b"".join(b"%d\n" % n for n in range(1, 5001))
    assert (result.total_bytes, result.total_lines) == (len(whole), 5000)
    last = snapshots[-1]
    assert (last.total_bytes, last.total_lines) == (len(whole), 5000)
    for snapshot in snapshots:
        assert len(snapshot.data) <= 1000
        assert whole[snapshot.start :].startswith(snapshot.data)
    assert whole.endswith(last.data)


async def test_small_output_is_not_kept(place: Place) -> None:
    snapshots, result = await watch(place, "echo hi")
    assert b"".join(snapshot.data for snapshot in snapshots) == b"hi\n"
    assert (result.kept_path, result.dropped) == (None, None)


@pytest.mark.parametrize("over", ["keep_over_bytes", "keep_over_lines"])
async def test_large_output_is_kept_whole_on_the_target(place: Place, over: str) -> None:
    limits = {"keep_over_bytes": 10**9, "keep_over_lines": 10**9, over: 1000}
    _, result = await watch(place, "seq 1 5000", **limits)
    assert result.kept_path is not None
    kept = await place.backend.read_file(result.kept_path)
    assert kept == b"".join(b"%d\n" % n for n in range(1, 5001))
    assert result.kept_bytes == len(kept)
    assert await place.mode(result.kept_path) == 0o600


async def test_tail_execution_takes_stdin(place: Place) -> None:
    snapshots, result = await watch(place, "cat", stdin=b"from the caller")
    assert b"".join(snapshot.data for snapshot in snapshots) == b"from the caller"
    assert result.exit_code == 0


async def test_tail_execution_stops_as_plain_does(place: Place) -> None:
    snapshots, result = await watch(place, "echo before; sleep 60", timeout_s=0.5)
    assert b"".join(snapshot.data for snapshot in snapshots) == b"before\n"
    assert (result.ended, result.killed) == ("timeout", "killed")


@pytest.mark.needs("shell")
@pytest.mark.parametrize(
    ("argv", "output"),
    [
        (["echo", "a  b", "*", "$HOME"], b"a  b * $HOME\n"),
        (["printf", "%s|", "", "'", "\n"], b"|'|\n|"),
        (["cat"], b"stdin"),
    ],
)
async def test_a_program_gets_its_arguments_untouched(
    place: Place, argv: list[str], output: bytes
) -> None:
    snapshots, result = await watch(place, "", argv=argv, stdin=b"stdin")
    assert result.exit_code == 0
    assert b"".join(snapshot.data for snapshot in snapshots) == output


@pytest.mark.needs("shell")
async def test_both_streams_come_in_true_order(place: Place) -> None:
    output, _ = await execute(place, "for i in 1 2 3; do echo out$i; echo err$i >&2; done")
    assert output == b"out1\nerr1\nout2\nerr2\nout3\nerr3\n"


@pytest.mark.needs("shell")
async def test_the_shell_is_neither_login_nor_interactive_and_has_no_terminal(
    place: Place,
) -> None:
    command = "case $- in *i*) echo interactive;; esac; tty; ps -o tty= -p $$ 2>/dev/null; echo $0"
    output, _ = await execute(place, command)
    assert b"interactive" not in output
    assert b"not a tty" in output
    assert b"-bash" not in output


@pytest.mark.needs("shell")
@pytest.mark.parametrize("size", [1, 131_071, 131_072, 200_000, 3_000_000])
async def test_a_command_of_any_size_runs(place: Place, size: int) -> None:
    output, result = await execute(place, f"x='{'y' * size}'; echo ${{#x}}")
    assert (output, result.exit_code) == (b"%d\n" % size, 0)


@pytest.mark.needs("shell")
async def test_the_commands_text_stands_in_no_process_list(place: Place) -> None:
    command = (
        ": xq-marker; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c xq-m[a]rker"
    )
    output, _ = await execute(place, command)
    assert output == b"0\n"


@pytest.mark.needs("shell")
async def test_values_of_variables_stand_in_no_process_list(place: Place) -> None:
    command = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'hidden-val[u]e'"
    output, _ = await execute(place, command, env={"FOO": "hidden-value"})
    assert output == b"0\n"


@pytest.mark.needs("shell")
async def test_all_bytes_of_output_arrive(place: Place) -> None:
    await place.put("data", bytes(range(256)) * 4000)
    output, result = await execute(place, "cat data")
    assert output == bytes(range(256)) * 4000
    assert result.total_bytes == len(output)


@pytest.mark.needs("shell")
@pytest.mark.needs("proc")  # to know that it is there
async def test_a_background_process_does_not_hold_the_call(place: Place) -> None:
    output, result = await execute(place, "sleep 60 & echo hi", timeout_s=30)
    assert output == b"hi\n"
    assert (result.ended, result.exit_code) == ("exited", 0)
    assert result.background >= 1
    assert result.duration_s < 5


# The tool --------------------------------------------------------------------------------


async def test_the_tool_shows_output(place: Place) -> None:
    assert said(await place.run("bash", command="echo hi")).strip() == "hi"


async def test_no_output_is_said(place: Place) -> None:
    assert "(no output)" in said(await place.run("bash", command="true"))


async def test_a_failing_command_is_an_error_with_its_output_and_code(place: Place) -> None:
    message = await place.run("bash", command="echo hi; exit 3")
    told = refused(message, "failed")
    assert told.startswith("hi")
    assert "3" in told
    assert message.structured_content["exitCode" if "exitCode" in message.structured_content
                                      else "exit_code"] == 3  # fmt: skip


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143)])
async def test_a_signalled_command_is_an_error_by_name(place: Place, name: str, code: int) -> None:
    told = refused(await place.run("bash", command=f"echo before; kill -{name} $$"), "failed")
    assert "before" in told
    assert f"SIG{name}" in told
    assert str(code) in told


async def test_a_timeout_keeps_the_output_and_tells_the_seconds(place: Place) -> None:
    message = await place.run("bash", command="echo before; sleep 60", timeout=0.5)
    told = refused(message, "timeout")
    assert "before" in told
    assert "0.5" in told


@pytest.mark.parametrize("timeout", [0, -1, 0.0, float("nan"), float("inf"), True, "soon"])
async def test_a_bad_timeout_runs_nothing(place: Place, timeout: Any) -> None:
    told = refused(
        await place.run("bash", command="echo made > made.txt", timeout=timeout),
        "invalid_arguments",
    )
    assert "timeout" in told
    assert await place.names() == []


async def test_an_abort_keeps_the_output(place: Place) -> None:
    controller = AbortController()
    tools = place.tools()
    async with anyio.create_task_group() as group:

        async def abort_later() -> None:
            await anyio.sleep(0.7)
            controller.abort("the user asked")

        group.start_soon(abort_later)
        [message] = await place.batch(
            ("bash", {"command": "echo before; sleep 60"}), signal=controller.signal, tools=tools
        )
    told = refused(message, "aborted")
    assert "before" in told


@pytest.mark.parametrize(("count", "cut"), [(2000, False), (2001, True)])
async def test_only_what_is_left_out_is_noted(place: Place, count: int, cut: bool) -> None:
    message = await place.run("bash", command=f"seq 1 {count}")
    shown = said(message)
    lines = shown.split("\n")
    assert str(count) in lines
    assert ("1" in lines) is not cut
    assert bool((message.details or {}).get("truncation")) is cut


async def test_long_output_can_be_read_whole(place: Place) -> None:
    message = await place.run("bash", command="seq 1 5000")
    shown = said(message)
    assert "5000" in shown.split("\n")
    kept = message.details["kept_path"]
    assert kept in shown
    whole = said(await place.run("read", path=kept, offset=1, limit=3))
    assert "1\n2\n3" in whole


async def test_a_missing_folder_is_blamed_by_name(place: Place) -> None:
    await place.remove("") if place.cwd != "/" else None
    told = refused(await place.run("bash", command="echo hi"), "not_found", "failed")
    assert place.cwd in told
    await place.mkdir("")
    assert "hi" in said(await place.run("bash", command="echo hi"))


@pytest.mark.needs("shell")
async def test_pagers_and_prompts_are_off_and_can_be_put_back(
    open_place: Callable[..., AbstractAsyncContextManager[Place]], place: Place
) -> None:
    command = 'echo "$TERM|$GIT_PAGER|$GIT_TERMINAL_PROMPT|$DEBIAN_FRONTEND"'
    assert "dumb|cat|0|noninteractive" in said(await place.run("bash", command=command))
    async with open_place(env={"GIT_PAGER": "less", "TERM": "xterm"}) as other:
        assert "xterm|less|0|" in said(await other.run("bash", command=command))


@pytest.mark.needs("shell")
@pytest.mark.needs("proc")  # to know that it is there
async def test_a_background_process_is_told(place: Place) -> None:
    message = await place.run("bash", command="sleep 60 & echo hi", timeout=30)
    assert said(message).startswith("hi")
    assert "background" in said(message)
    assert message.duration_ms < 5000


@pytest.mark.needs("shell")
async def test_a_missing_program_is_exit_127(place: Place) -> None:
    told = refused(await place.run("bash", command="no-such-program-anywhere"), "failed")
    assert "127" in told
    assert "no-such-program-anywhere" in told
