"""A place under test: one backend, a fresh workspace on its target, and the tools on top."""

from __future__ import annotations

import itertools
import posixpath
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.calls import ImageContent, TextContent, ToolCall, ToolResultMessage
from toolkit.runner import ToolRunner
from toolkit.toolset import coding_tools, read_only_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.tool import AgentTool

_numbers = itertools.count(1)


class Seeder(Protocol):
    """Prepare and inspect files on a target by the target's own means, not by the tools."""

    async def put(self, path: str, data: bytes) -> None:
        """Write a file, and the folders above it."""

    async def put_all(self, files: Mapping[str, bytes]) -> None:
        """Write many files, and the folders above them, in one trip."""

    async def get(self, path: str) -> bytes:
        """Return a file's bytes."""

    async def mkdir(self, path: str) -> None:
        """Make a folder and those above it."""

    async def symlink(self, target: str, path: str) -> None:
        """Make a symlink at `path`."""

    async def link(self, existing: str, path: str) -> None:
        """Make a hard link at `path`."""

    async def chmod(self, path: str, mode: int) -> None:
        """Set permission bits."""

    async def mode(self, path: str) -> int:
        """Return permission bits."""

    async def inode(self, path: str) -> int:
        """Return a number that two hard links share and two files do not."""

    async def readlink(self, path: str) -> str | None:
        """Return a symlink's text, or None for anything else."""

    async def exists(self, path: str) -> bool:
        """Return True if the name is there, even as a broken symlink."""

    async def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""

    async def remove(self, path: str) -> None:
        """Remove a file, or a folder with all below it."""

    async def rename(self, old: str, new: str) -> None:
        """Rename."""

    async def fifo(self, path: str) -> None:
        """Make a FIFO."""


class Place:
    """What a conformance test gets.

    Args:
        backend: The backend under test, entered.
        cwd: An empty folder on its target; relative paths are below it.
        seeder: How to prepare files there.
        home: The home folder on the target, also empty.
    """

    def __init__(self, backend: Any, cwd: str, seeder: Seeder, home: str) -> None:
        self.backend = backend
        self.cwd = cwd
        self.home = home
        self._seeder = seeder

    async def below(self, name: str) -> Place:
        """Return a place of the same backend whose workspace is a new folder in this one."""
        cwd = self.path(name)
        await self._seeder.mkdir(cwd)
        return Place(self.backend, cwd, self._seeder, self.home)

    def path(self, name: str) -> str:
        """Return the absolute path of a name in the workspace."""
        return posixpath.join(self.cwd, name)

    # Preparing and inspecting ------------------------------------------------------------

    async def put(self, name: str, data: bytes | str = b"", mode: int | None = None) -> str:
        """Write a file (and the folders above it) and return its absolute path."""
        path = self.path(name)
        await self._seeder.put(path, _as_bytes(data))
        if mode is not None:
            await self._seeder.chmod(path, mode)
        return path

    async def put_all(self, files: Mapping[str, bytes | str | None]) -> None:
        """Write many files, and the folders above them, in one trip; None is an empty file."""
        await self._seeder.put_all(
            {self.path(name): _as_bytes(data or b"") for name, data in files.items()}
        )

    async def get(self, name: str) -> bytes:
        """Return a file's bytes."""
        return await self._seeder.get(self.path(name))

    async def mkdir(self, name: str, mode: int | None = None) -> str:
        """Make a folder (and those above it) and return its absolute path."""
        path = self.path(name)
        await self._seeder.mkdir(path)
        if mode is not None:
            await self._seeder.chmod(path, mode)
        return path

    async def symlink(self, target: str, name: str) -> str:
        """Make a symlink with the text `target`."""
        await self._seeder.symlink(target, self.path(name))
        return self.path(name)

    async def link(self, existing: str, name: str) -> str:
        """Make a hard link."""
        await self._seeder.link(self.path(existing), self.path(name))
        return self.path(name)

    async def chmod(self, name: str, mode: int) -> None:
        """Set permission bits."""
        await self._seeder.chmod(self.path(name), mode)

    async def mode(self, name: str) -> int:
        """Return permission bits."""
        return await self._seeder.mode(self.path(name))

    async def inode(self, name: str) -> int:
        """Return the file's identity."""
        return await self._seeder.inode(self.path(name))

    async def readlink(self, name: str) -> str | None:
        """Return a symlink's text, or None."""
        return await self._seeder.readlink(self.path(name))

    async def exists(self, name: str) -> bool:
        """Return True if the name is there."""
        return await self._seeder.exists(self.path(name))

    async def names(self, name: str = "") -> list[str]:
        """Return the names in a folder, sorted."""
        return await self._seeder.names(self.path(name).rstrip("/") or "/")

    async def remove(self, name: str) -> None:
        """Remove a file or a whole folder."""
        await self._seeder.remove(self.path(name))

    async def rename(self, old: str, new: str) -> None:
        """Rename."""
        await self._seeder.rename(self.path(old), self.path(new))

    async def fifo(self, name: str) -> str:
        """Make a FIFO and return its absolute path."""
        await self._seeder.fifo(self.path(name))
        return self.path(name)

    # Calling -----------------------------------------------------------------------------

    def tools(self, **options: Any) -> list[AgentTool]:
        """Return all seven tools on this place."""
        made = [
            *coding_tools(self.backend, cwd=self.cwd, **options),
            *read_only_tools(self.backend, cwd=self.cwd),
        ]
        return list({tool.name: tool for tool in made}.values())

    async def run(self, tool: str, /, **arguments: Any) -> ToolResultMessage:
        """Run one call through the whole pipeline."""
        return await self.call(tool, arguments)

    async def call(self, tool: str, arguments: Any) -> ToolResultMessage:
        """Run one call whose arguments are given as the model sent them."""
        [message] = await self.batch((tool, arguments))
        return message

    async def batch(
        self,
        *calls: tuple[str, Any],
        signal: Any = None,
        tools: Sequence[AgentTool] | None = None,
        **runner_options: Any,
    ) -> list[ToolResultMessage]:
        """Run calls as one batch; their ids are call-1, call-2 ... of one count."""
        batch = [
            ToolCall(id=f"call-{next(_numbers)}", name=name, arguments=arguments)
            for name, arguments in calls
        ]
        async with ToolRunner(tools or self.tools(), **runner_options) as runner:
            messages = await runner.run(batch, signal=signal)
        assert [m.tool_call_id for m in messages] == [c.id for c in batch]
        for message in messages:
            message.model_dump_json(by_alias=True).encode("utf-8")
        return messages


def _as_bytes(data: bytes | str) -> bytes:
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data


def text(message: ToolResultMessage) -> str:
    """Return all text of a message."""
    return "\n".join(block.text for block in message.content if isinstance(block, TextContent))


def images(message: ToolResultMessage) -> list[ImageContent]:
    """Return the image blocks of a message."""
    return [block for block in message.content if isinstance(block, ImageContent)]


def said(message: ToolResultMessage) -> str:
    """Return the text of a message that is not an error; fail with its text when it is."""
    assert not message.is_error, f"{message.error_kind}: {text(message)}"
    return text(message)


def refused(message: ToolResultMessage, *kinds: str) -> str:
    """Return the text of an error; fail when it is none, or of another kind than asked."""
    assert message.is_error, text(message)
    assert text(message).strip()
    if kinds:
        assert message.error_kind in kinds, f"{message.error_kind}: {text(message)}"
    return text(message)
