"""Lanes: one request at a time, dirty ones are closed, and a far end that is not to be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
import pytest

from backends.remote.channel import Channel
from backends.remote.lane import Lane
from backends.remote.lanes import Lanes
from backends.remote.shell_backend import ShellBackend
from operations import BackendUnavailable, ConnectionLost, OperationError
from tests.backends.remote.shells import PRESENT, Played, Shells, hello, word

pytestmark = pytest.mark.anyio


@pytest.fixture(params=PRESENT)
def shells(request: pytest.FixtureRequest) -> Shells:
    return Shells(request.param)


class Pool:
    """Lanes that are open inside `async with`."""

    def __init__(self, opener: object, **options: object) -> None:
        self.lanes = Lanes(
            opener,  # type: ignore[arg-type]
            target="test:",
            **{"connect_timeout_s": 20.0, **options},  # type: ignore[arg-type]
        )

    async def __aenter__(self) -> Lanes:
        await self.lanes.enter()
        return self.lanes

    async def __aexit__(self, *_: object) -> None:
        await self.lanes.close()


async def test_a_lane_serves_one_request_after_another(shells: Shells) -> None:
    async with Pool(shells) as lanes:
        for number in range(3):
            async with lanes.lane("files") as lane:
                reply = await lane.call(b"echo %d; (exit %d)" % (number, number), limit=100)
            assert (reply.data, reply.status) == (b"%d\n" % number, number)
    assert len(shells.opened) == 1


@pytest.mark.parametrize("size", [0, 1, 511, 65_536, 65_537, 1_000_000])
async def test_a_body_is_read_to_the_byte(shells: Shells, size: int) -> None:
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    take = "dd bs=65536 iflag=count_bytes,fullblock count="
    async with Pool(shells) as lanes, lanes.lane("files") as lane:
        request = f"{take}{size} <&3; IFS= read -r x <&3".encode()
        reply = await lane.call(request, limit=2_000_000, body=body)
        assert reply.data == body
        assert (await lane.call(b"echo next", limit=100)).data == b"next\n"


@pytest.mark.parametrize("size", [10, 3000, 500_000])
async def test_a_request_of_any_size_is_evaluated(shells: Shells, size: int) -> None:
    text = b"a\nb'c\\d\xff " * (size // 9)
    quoted = b"'" + text.replace(b"'", b"'\\''") + b"'"
    async with Pool(shells) as lanes, lanes.lane("files") as lane:
        take = "dd bs=65536 iflag=count_bytes,fullblock count="
        await lane.call(f"take='{take}'".encode(), limit=0)
        reply = await lane.call(b"printf %s " + quoted, limit=size + 10)
    assert reply.data == text


async def test_lanes_in_use_are_bounded(shells: Shells) -> None:
    async with Pool(shells, files=2) as lanes:

        async def one() -> None:
            async with lanes.lane("files") as lane:
                await lane.call(b"true", limit=0)

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one)
    assert len(shells.opened) <= 2


async def test_a_lane_left_midway_is_replaced(shells: Shells) -> None:
    async with Pool(shells) as lanes:
        with anyio.move_on_after(0.3):
            async with lanes.lane("files") as lane:
                await lane.call(b"sleep 1; echo late", limit=100)
        async with lanes.lane("files") as other:
            assert other is not lane
            assert (await other.call(b"echo mine", limit=100)).data == b"mine\n"
    assert len(shells.opened) == 2


async def test_a_lane_that_printed_unasked_is_not_used_again(shells: Shells) -> None:
    async with Pool(shells) as lanes:
        async with lanes.lane("files") as lane:
            await lane.call(b"(sleep 0.1; echo stray) & true", limit=100)
        with anyio.fail_after(10):
            while lane.lost is None:
                await anyio.sleep(0.01)
        async with lanes.lane("files") as other:
            assert (await other.call(b"echo mine", limit=100)).data == b"mine\n"


async def test_a_shell_that_was_killed_is_a_lost_connection_and_the_next_lane_works(
    shells: Shells,
) -> None:
    async with Pool(shells) as lanes:
        with pytest.raises(ConnectionLost):
            async with lanes.lane("files") as lane:
                await lane.call(b"kill -9 $$", limit=100)
        async with lanes.lane("files") as other:
            assert (await other.call(b"echo mine", limit=100)).data == b"mine\n"


async def test_silence_within_a_request_is_a_lost_connection(shells: Shells) -> None:
    async with Pool(shells) as lanes:
        with pytest.raises(ConnectionLost, match="nothing was heard"), anyio.fail_after(5):
            async with lanes.lane("files") as lane:
                await lane.call(b"sleep 3", limit=100, idle_s=0.2)


# A far end that is played ----------------------------------------------------------------


async def play(answer: Callable[[bytes], bytes | None]) -> tuple[list[Played], Lanes]:
    opened: list[Played] = []

    async def open_channel(argv: Sequence[str]) -> Channel:
        opened.append(Played(answer))
        return opened[-1]

    return opened, Lanes(open_channel, target="test:", connect_timeout_s=2.0)


async def ask(answer: Callable[[bytes], bytes | None], limit: int = 100) -> Lane:
    """Make one request of a far end that is played; return its lane."""
    _, lanes = await play(lambda sent: hello(sent) or answer(sent))
    await lanes.enter()
    try:
        with anyio.fail_after(5):
            async with lanes.lane("files") as lane:
                await lane.call(b"x", limit=limit, idle_s=1.0)
        return lane
    finally:
        await lanes.close()


@pytest.mark.parametrize(
    "answer",
    [
        lambda sent: b"x" * 101,
        lambda sent: b"x" * (1 << 20),
        lambda sent: b"\x1e" + word(sent) + b" Q 0\n",
        lambda sent: b"\x1e" + word(sent) + b" R 256\n",
        lambda sent: b"\x1e" + word(sent) + b" R x\n" + b"y" * 40,
        lambda sent: b"\x1e" + word(sent) + b"." * 99,
        lambda sent: (b"\x1e" + word(sent) + b" R 0\n") * 2,
        lambda sent: (b"\x1e" + word(sent) + b" F 0\n") * 2,
        lambda sent: b"\x1e" + word(sent) + b" R 0\nmore",
        lambda sent: b"",
        lambda sent: None,
        lambda sent: b"\x1e" + b"0" * 20 + b" R 0\n",
    ],
    ids=[
        "too long", "flood", "letter", "status", "number", "no mark", "twice", "fails twice",
        "more", "silence", "end", "other word",
    ],
)  # fmt: skip
async def test_nonsense_is_one_clear_error(answer: Callable[[bytes], bytes | None]) -> None:
    with pytest.raises(ConnectionLost):
        await ask(answer)


async def test_an_answer_in_single_bytes_is_an_answer() -> None:
    _, lanes = await play(lambda sent: hello(sent) or b"")
    channels, lanes = await play(lambda sent: hello(sent) or b"")
    await lanes.enter()
    async with lanes.lane("files") as lane, anyio.create_task_group() as group:

        async def drip() -> None:
            while len(channels[0].sent) < 2:
                await anyio.sleep(0.001)
            said = b"data\x1e" + word(channels[0].sent[1]) + b" R 3\n"
            for byte in said:
                channels[0].push(bytes([byte]))
                await anyio.lowlevel.checkpoint()

        group.start_soon(drip)
        reply = await lane.call(b"x", limit=4)
    assert (reply.data, reply.status) == (b"data", 3)
    await lanes.close()


async def test_nothing_is_sent_twice() -> None:
    channels, lanes = await play(lambda sent: hello(sent) or None)
    await lanes.enter()
    with pytest.raises(ConnectionLost):
        async with lanes.lane("files") as lane:
            await lane.call(b"only-once", limit=10)
    sent = b"".join(part for channel in channels for part in channel.sent)
    assert sent.count(b"only-once") == 1
    await lanes.close()


@pytest.mark.parametrize(
    ("noise", "works"), [(0, True), (60_000, True), (70_000, False)], ids=["none", "some", "flood"]
)
async def test_noise_before_the_hello_is_skipped_and_bounded(noise: int, works: bool) -> None:
    def answer(sent: bytes) -> bytes | None:
        said = hello(sent)
        if said is not None:
            return b"m" * noise + said
        return b"\x1e" + word(sent) + b" R 0\n"

    _, lanes = await play(answer)
    await lanes.enter()
    try:
        if works:
            async with lanes.lane("files") as lane:
                assert (await lane.call(b"x", limit=0)).status == 0
                assert lane.pid == 77
        else:
            with pytest.raises(BackendUnavailable, match="noise"):
                async with lanes.lane("files"):
                    pass
    finally:
        await lanes.close()


@pytest.mark.parametrize("says", [b"", None, b"sh: not found\n"], ids=["silent", "ends", "talks"])
async def test_a_program_that_is_no_shell_is_unavailable(says: bytes | None) -> None:
    _, lanes = await play(lambda sent: says)
    await lanes.enter()
    with pytest.raises(BackendUnavailable), anyio.fail_after(10):
        async with lanes.lane("files"):
            pass
    await lanes.close()


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"nonsense",
        b"take=rm -rf /;\0uid=0\0gid=0\0umask=22\0",
        b"take=head -c \0uid=0;reboot\0gid=0\0umask=22\0",
        b"take=head -c \0uid=0\0gid=0\0umask=99\0",
        b"uid=0\0gid=0\0umask=22\0",
    ],
)
async def test_a_probe_without_sense_is_unavailable(told: bytes) -> None:
    """What it tells becomes part of the script for further lanes, so it must be what it may be."""

    def answer(sent: bytes) -> bytes | None:
        return hello(sent) or told + b"\x1e" + word(sent) + b" R 0\n"

    async def open_channel(argv: Sequence[str]) -> Channel:
        return Played(answer)

    with pytest.raises(BackendUnavailable):
        async with ShellBackend(open_channel, target="test:", cwd="/"):
            pass


async def test_a_backend_that_is_closed_refuses(shells: Shells) -> None:
    backend = shells.backend()
    async with backend:
        await backend.exists("/")
    with pytest.raises(OperationError):
        await backend.exists("/")


async def test_commands_leave_a_lane_for_files(shells: Shells) -> None:
    async with Pool(shells) as lanes:
        await lanes.prepare(2)
        taken = [await lanes.take("commands") for _ in range(3)]
        assert len(shells.opened) == 4
        await lanes.take("files")
        assert len(shells.opened) == 4
        for lane in taken:
            lanes.give_back(lane)
