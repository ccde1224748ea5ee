"""Many hosts: each call on each host has one answer, and no host waits for a bad one."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.memory import CommandRun, MemoryBackend
from operations import BackendUnavailable, ConnectionLost
from toolkit import AbortController, Fleet, ToolCall, ToolResultMessage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.anyio

UPTIME = [[ToolCall(id="1", name="bash", arguments={"command": "uptime"})]]


def good(answer: str = "up 3 days\n") -> MemoryBackend:
    return MemoryBackend(commands={"uptime": answer, "date": "today\n"})


@asynccontextmanager
async def place(
    *,
    before: Callable[[], Any] | None = None,
    after: Callable[[], Any] | None = None,
    backend: MemoryBackend | None = None,
) -> AsyncIterator[MemoryBackend]:
    """Give a place that does something when it opens and closes; a task group spans its life."""
    async with anyio.create_task_group() as tasks:
        if before is not None:
            await before()
        tasks.start_soon(anyio.sleep_forever)
        try:
            yield backend or good()
        finally:
            if after is not None:
                await after()
            tasks.cancel_scope.cancel()


def fails(error: BaseException) -> Callable[[], Any]:
    async def fail() -> None:
        raise error

    return fail


def hanging() -> MemoryBackend:
    """Return a place where a command prints a line and then goes on for ever."""

    async def hang(run: CommandRun) -> None:
        run.write("begun\n")
        await anyio.sleep_forever()

    return MemoryBackend(commands={"uptime": hang})


async def answers(fleet: Fleet) -> dict[str, list[ToolResultMessage]]:
    """Run a fleet to its end and return what each host said."""
    said: dict[str, list[ToolResultMessage]] = {status.host: [] for status in fleet.statuses}
    with anyio.fail_after(20):
        async with fleet:
            async for answer in fleet:
                said[answer.host].append(answer.message)
    return said


def states(fleet: Fleet) -> dict[str, str]:
    return {status.host: status.state for status in fleet.statuses}


async def test_every_call_of_the_script_is_answered_on_every_host():
    """In the order of the calls, with the host's own result."""
    hosts = {f"web{number}": good(f"up {number}\n") for number in range(5)}
    date = ToolCall(id="2", name="bash", arguments={"command": "date"})
    fleet = Fleet(hosts, [*UPTIME, [date, ToolCall(id="3", name="ls")]], forks=2)
    assert set(states(fleet).values()) == {"waiting"}
    said = await answers(fleet)
    for number in range(5):
        first, second, third = said[f"web{number}"]
        assert first.text == f"up {number}"
        assert [first.tool_call_id, second.tool_call_id, third.tool_call_id] == ["1", "2", "3"]
    assert set(states(fleet).values()) == {"done"}
    assert [(status.answered, status.trouble) for status in fleet.statuses] == [(3, None)] * 5


async def test_no_more_hosts_than_forks_are_open_at_a_time():
    """Nor fewer, while there are hosts left."""
    opened, most = 0, 0

    async def opens() -> None:
        nonlocal opened, most
        opened += 1
        most = max(most, opened)
        await anyio.sleep(0.01)

    async def closes() -> None:
        nonlocal opened
        opened -= 1

    hosts = {str(number): place(before=opens, after=closes) for number in range(7)}
    await answers(Fleet(hosts, UPTIME, forks=3))
    assert (opened, most) == (0, 3)


async def test_a_host_that_hangs_in_connecting_holds_up_nobody():
    """The others' answers come; an abort ends it, and nothing was run there."""
    closed = []

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            closed.append(True)

    hosts = {"bad": place(before=hang)} | {str(number): good() for number in range(20)}
    controller = AbortController()
    fleet = Fleet(hosts, UPTIME, forks=2, signal=controller.signal)
    said = []
    with anyio.fail_after(20):
        async with fleet:
            async for answer in fleet:
                said.append(answer)
                if len(said) == 20:
                    assert states(fleet)["bad"] == "connecting"
                    controller.abort("interrupted")
    assert closed == [True]
    assert (said[-1].host, said[-1].message.error_kind) == ("bad", "not_started")
    assert said[-1].message.text == "not started: interrupted while connecting"
    assert Counter(states(fleet).values()) == {"done": 20, "stopped": 1}


async def test_a_host_that_does_not_open_in_time_is_unreachable():
    """With the limit in its answers."""
    hosts = {"bad": place(before=anyio.sleep_forever), "good": good()}
    fleet = Fleet(hosts, UPTIME, forks=1, open_timeout_s=0.05)
    said = await answers(fleet)
    assert states(fleet) == {"bad": "unreachable", "good": "done"}
    assert said["bad"][0].error_kind == "unavailable"
    assert said["bad"][0].text == "not started: the host was not open after 0.05 s"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BackendUnavailable("ssh://bad", "nothing listens there"), "nothing listens there"),
        (OSError("a cable is missing"), "a cable is missing"),
        (SystemExit(3), "SystemExit: 3"),
        (ExceptionGroup("many", [ValueError("one"), ValueError("two")]), "one\ntwo"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
)
async def test_whatever_opening_raises_is_an_answer(error: BaseException, told: str):
    """To each of its calls; the other hosts do not notice."""

    class Bad:
        async def __aenter__(self) -> Any:
            raise error

        async def __aexit__(self, *_: object) -> None:
            raise AssertionError("it was never open")

    fleet = Fleet({"bad": Bad(), "good": good()}, [*UPTIME, *UPTIME], forks=1)
    said = await answers(fleet)
    assert states(fleet) == {"bad": "unreachable", "good": "done"}
    assert [message.error_kind for message in said["bad"]] == ["unavailable"] * 2
    assert told in said["bad"][0].text
    assert fleet.statuses[0].last_line


async def test_a_host_that_dies_in_a_command_says_that_it_may_have_run():
    """It counts as failed; the script goes on when it is back."""
    dying = good()
    dying.faults.fail("*", ConnectionLost("ssh://dying", "the wire was cut"), times=1)
    fleet = Fleet({"dying": dying, "good": good()}, [*UPTIME, *UPTIME])
    said = await answers(fleet)
    lost, again = said["dying"]
    assert lost.error_kind == "connection_lost"
    assert "may or may not have happened" in lost.text
    assert not again.is_error
    assert states(fleet) == {"dying": "failed", "good": "done"}


async def test_a_host_that_is_gone_is_not_tried_for_every_further_call():
    """The rest is not started, so that a long script does not wait for it again and again."""
    gone = good()
    gone.faults.fail("*", BackendUnavailable("ssh://gone", "no route"), times=None)
    fleet = Fleet({"gone": gone, "good": good()}, UPTIME * 50)
    said = await answers(fleet)
    kinds = [message.error_kind for message in said["gone"]]
    assert kinds == ["unavailable"] + ["not_started"] * 49
    assert states(fleet) == {"gone": "unreachable", "good": "done"}
    assert len(gone.commands) <= 1


async def test_a_flood_holds_up_nobody_and_little_of_it_is_kept():
    """What is shown is bounded, however long the line."""
    controller = AbortController()

    async def flood(run: CommandRun) -> None:
        while True:
            run.write("x" * 100_000 + "\nlast " + "y" * 10_000)
            await anyio.sleep(0)

    hosts = {"flood": MemoryBackend(commands={"uptime": flood}), "good": good()}
    fleet = Fleet(hosts, UPTIME, signal=controller.signal)
    with anyio.fail_after(20):
        async with fleet:
            first = await anext(fleet)
            assert first.host == "good"
            while not fleet.statuses[0].last_line:
                await anyio.sleep(0.01)
            assert len(fleet.statuses[0].last_line) == 200
            controller.abort()
            second = await anext(fleet)
            assert (second.host, second.message.error_kind) == ("flood", "aborted")
            assert len(second.message.text) < 200_000


async def test_an_abort_ends_all_with_what_they_had():
    """The running with their output, the waiting unstarted, the done untouched."""
    hosts = {"done": good(), "runs": hanging(), "waits": good()}
    controller = AbortController()
    fleet = Fleet(hosts, [*UPTIME, *UPTIME], forks=1, signal=controller.signal)
    said: dict[str, list[ToolResultMessage]] = {name: [] for name in hosts}
    with anyio.fail_after(20):
        async with fleet, anyio.create_task_group() as tasks:

            async def abort() -> None:
                while fleet.statuses[1].last_line != "begun":
                    await anyio.sleep(0.01)
                controller.abort("interrupted")

            tasks.start_soon(abort)
            async for answer in fleet:
                said[answer.host].append(answer.message)
    assert states(fleet) == {"done": "done", "runs": "stopped", "waits": "stopped"}
    running, after = said["runs"]
    assert running.error_kind == "aborted"
    assert running.text.startswith("begun\n")
    assert after.text == said["waits"][0].text == "not started: interrupted"
    assert [message.error_kind for message in said["waits"]] == ["not_started"] * 2


async def test_answers_come_before_a_slow_close_and_closing_is_bounded():
    """What may be left there is told."""
    hosts = {"slow": place(after=anyio.sleep_forever), "good": good()}
    fleet = Fleet(hosts, UPTIME, forks=1, close_timeout_s=0.3)
    with anyio.fail_after(20):
        async with fleet:
            first = await anext(fleet)
            assert (first.host, first.message.is_error) == ("slow", False)
            assert states(fleet) == {"slow": "done", "good": "waiting"}
            assert (await anext(fleet)).host == "good"
    assert states(fleet) == {"slow": "done", "good": "done"}
    trouble = fleet.statuses[0].trouble
    assert trouble == "closing: it took over 0.3 s; something may be left there"


async def test_an_error_of_closing_is_told_and_not_raised():
    """The answers stand."""
    fleet = Fleet({"bad": place(after=fails(OSError("a file stays")))}, UPTIME)
    said = await answers(fleet)
    assert said["bad"][0].text == "up 3 days"
    assert states(fleet) == {"bad": "done"}
    assert fleet.statuses[0].trouble == "closing: a file stays"


async def test_an_error_between_opening_and_the_answers_is_an_answer():
    """Here the runner's maker fails; nothing was begun."""

    def broken(*_: object) -> Any:
        raise RuntimeError("no tools today")

    fleet = Fleet({"a": good()}, UPTIME, make_runner=broken)
    said = await answers(fleet)
    assert [(m.text, m.error_kind) for m in said["a"]] == [("no tools today", "internal")]
    assert states(fleet) == {"a": "failed"}


async def test_leaving_the_block_early_closes_every_host():
    """As when the first answer was enough."""
    closed = []

    async def close() -> None:
        closed.append(True)

    hosts = {"a": good(), "b": place(after=close, backend=hanging())}
    with anyio.fail_after(20):
        async with Fleet(hosts, UPTIME) as fleet:
            async for answer in fleet:
                assert answer.host == "a"
                while fleet.statuses[1].last_line != "begun":
                    await anyio.sleep(0.01)
                break
    assert closed == [True]
    assert states(fleet) == {"a": "done", "b": "stopped"}


async def test_an_error_of_the_body_is_not_put_into_a_group():
    """`except ValueError` around a fleet works, and the hosts are closed."""
    closed = []

    async def close() -> None:
        closed.append(True)

    with pytest.raises(ValueError, match="mine"):  # noqa: PT012
        async with Fleet({"a": place(after=close, backend=hanging())}, UPTIME) as fleet:
            while states(fleet)["a"] != "running":
                await anyio.sleep(0.01)
            raise ValueError("mine")
    assert closed == [True]


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancellation_at_any_moment_closes_what_was_opened(steps: int):
    """It goes through; nothing stays open."""
    opened = Counter[str]()

    async def opens() -> None:
        opened["now"] += 1
        try:
            await anyio.sleep(0)
        except BaseException:
            opened["now"] -= 1
            raise

    async def closes() -> None:
        opened["now"] -= 1

    hosts = {str(number): place(before=opens, after=closes) for number in range(3)}
    with anyio.fail_after(20), anyio.CancelScope() as scope:
        fleet = Fleet(hosts, [*UPTIME, *UPTIME], forks=2)
        async with fleet, anyio.create_task_group() as tasks:

            async def cancel() -> None:
                for _ in range(steps * 3):
                    await anyio.sleep(0)
                scope.cancel()

            tasks.start_soon(cancel)
            async for _ in fleet:
                pass
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert opened["now"] == 0


BEHAVIOURS = {
    "good": good,
    "no tools": lambda: place(backend=MemoryBackend()),
    "hangs": hanging,
    "hangs open": lambda: place(before=anyio.sleep_forever),
    "fails open": lambda: place(before=fails(BackendUnavailable("x", "no"))),
    "hangs close": lambda: place(after=anyio.sleep_forever),
    "fails close": lambda: place(after=fails(RuntimeError("late"))),
}


@settings(max_examples=25)
@given(
    kinds=st.lists(st.sampled_from(sorted(BEHAVIOURS)), max_size=8),
    batches=st.lists(st.integers(0, 3), max_size=3),
    forks=st.integers(1, 4),
    loop=st.sampled_from(["asyncio", "trio"]),
)
def test_whatever_hosts_do_each_call_is_answered_once(
    kinds: list[str], batches: list[int], forks: int, loop: str
):
    """In order, and with a final state."""
    script = [
        [
            ToolCall(id=f"{at}.{number}", name="bash", arguments={"command": "uptime"})
            for number in range(count)
        ]
        for at, count in enumerate(batches)
    ]

    async def main() -> None:
        hosts = {f"{at} {kind}": BEHAVIOURS[kind]() for at, kind in enumerate(kinds)}
        controller = AbortController()
        fleet = Fleet(
            hosts,
            script,
            forks=forks,
            signal=controller.signal,
            open_timeout_s=0.01,
            close_timeout_s=0.01,
        )
        async with anyio.create_task_group() as tasks:

            async def stop() -> None:
                await anyio.sleep(0.03)
                controller.abort()

            tasks.start_soon(stop)
            said = await answers(fleet)
        ids = [call.id for batch in script for call in batch]
        assert set(said) == set(hosts)
        for messages in said.values():
            assert [message.tool_call_id for message in messages] == ids
        final = {"done", "failed", "unreachable", "stopped"}
        assert set(states(fleet).values()) <= final

    anyio.run(main, backend=loop)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"forks": 0}, "forks is 0"), ({"open_timeout_s": 0}, "above 0"),
     ({"close_timeout_s": float("nan")}, "above 0")],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(options: dict[str, Any], says: str):
    """Before anything is opened."""
    with pytest.raises(ValueError, match=says):
        Fleet({}, UPTIME, **options)


def test_a_list_of_calls_is_no_script():
    """A script is made of batches."""
    with pytest.raises(TypeError, match="no ToolCall in a batch"):
        Fleet({}, UPTIME[0])  # type: ignore[arg-type]


async def test_a_fleet_without_hosts_ends_at_once():
    """As a loop over nothing does."""
    assert await answers(Fleet({}, UPTIME)) == {}


async def test_a_fleet_runs_once():
    """Its places can be entered only once."""
    fleet = Fleet({"a": good()}, UPTIME)
    with pytest.raises(RuntimeError, match="async with"):
        await anext(fleet)
    await answers(fleet)
    with pytest.raises(RuntimeError, match="make another one"):
        async with fleet:
            pass
