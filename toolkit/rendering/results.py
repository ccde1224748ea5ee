"""Results: a file, a diff, an output, a listing, or what went wrong and what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from toolkit.calls import TextContent
from toolkit.rendering.calls import argument
from toolkit.rendering.code import code_view
from toolkit.rendering.diffs import diff_view
from toolkit.rendering.plain import more_lines, visible
from toolkit.texts.languages import language_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel
    from rich.console import RenderableType

    from toolkit.calls import ToolResultMessage
    from toolkit.tool import AgentToolResult

__all__ = ["result_body"]

_NOTE, _ERROR, _DONE, _REMEDY = "dim italic", "red", "green", "bold"
_FOLDER, _LINK, _NUMBER, _FILE = "bold blue", "cyan", "dim", "magenta"
_MATCH_LINE = re.compile(
    r"(?P<path>.*?)(?P<mark>[:-])(?P<line>\d+)(?P=mark) (?P<text>.*)", re.DOTALL
)
_LITERAL = re.compile(r"[\w\s/=<>,;:\"'@#%&~!-]+")


def result_body(
    name: str,
    params: BaseModel | Mapping[str, Any],
    result: AgentToolResult | ToolResultMessage,
    *,
    max_lines: int | None = None,
) -> RenderableType:
    """See `toolkit.rendering.result_view`."""
    view = _View(params, result, max_lines)
    shows = _BODIES.get(name, _View.plain)
    if result.is_error and name != "bash":
        shows = _View.error
    return shows(view)


class _View:
    """One result on its way to the screen."""

    def __init__(
        self,
        params: BaseModel | Mapping[str, Any],
        result: AgentToolResult | ToolResultMessage,
        max_lines: int | None,
    ) -> None:
        self.params = params
        self.details: Mapping[str, Any] = result.details or {}
        self.error_kind = result.error_kind
        self.is_error = result.is_error
        self.max_lines = max_lines
        self.text = "\n\n".join(
            visible(block.text, keep="\n\t")
            if isinstance(block, TextContent)
            else f"[{block.mime_type}, {_size(len(block.data) * 3 // 4)}]"
            for block in result.content
        )

    def plain(self) -> RenderableType:
        """Show the text as it is, notes apart."""
        body, notes = _split_notes(self.text)
        return _group(self._first(body), notes)

    def error(self) -> RenderableType:
        """Show what went wrong in red, and what would be right so that it stands out."""
        said, semicolon, remedy = self.text.partition("; ")
        text = Text(overflow="fold")
        kind = (self.error_kind or "failed").replace("_", " ")
        text.append(f"{kind}: ", f"bold {_ERROR}").append(said, _ERROR)
        return text.append(semicolon, _ERROR).append(remedy, _REMEDY)

    def read(self) -> RenderableType:
        """Show a file's lines with their numbers, in the colours of its language."""
        count = self.details.get("shown_lines")
        if self.details.get("kind") != "text" or not isinstance(count, int):
            return Text(self.text, overflow="fold")
        lines = self.text.split("\n")
        body, rest = lines[:count], "\n".join(lines[count:]).strip("\n")
        start = self.details.get("start_line")
        view = code_view(
            body,
            self.details.get("language"),
            first=start if isinstance(start, int) else 1,
            max_lines=self.max_lines,
        )
        return _group(view, rest)

    def write(self) -> RenderableType:
        """Show what the file holds now."""
        content, path = argument(self.params, "content"), argument(self.params, "path")
        done = Text(self.text, _DONE, overflow="fold")
        if not isinstance(content, str) or not content:
            return done
        lines = visible(content, keep="\n\t").removesuffix("\n").split("\n")
        view = code_view(lines, language_of(str(path)), sign="+", max_lines=self.max_lines)
        return Group(view, done)

    def edit(self) -> RenderableType:
        """Show the diff, with the words that differ marked."""
        body, notes = _split_notes(self.text)
        diff = self.details.get("diff")
        done = Text(body, _DONE, overflow="fold")
        if not isinstance(diff, str) or not diff:
            return _group(done, notes)
        return _group(
            Group(diff_view(visible(diff, keep="\n\t"), max_lines=self.max_lines), done), notes
        )

    def bash(self) -> RenderableType:
        """Show the output, then how it ended and how long it took."""
        ended = Text(overflow="fold")
        seconds = self.details.get("duration_ms")
        took = f"{seconds / 1000:.2f} s" if isinstance(seconds, int | float) else ""
        output = self.text
        if self.is_error:
            output, _, status = self.text.rpartition("\n\n")
            ended.append(f"{status} ({took})" if took else status, f"bold {_ERROR}")
        elif took:
            ended.append(f"done in {took}", _DONE)
        return Group(self._last(output), ended) if ended else self._last(output)

    def grep(self) -> RenderableType:
        """Show matches below the name of their file."""
        body, notes = _split_notes(self.text)
        shown = Text(overflow="fold")
        wanted = self._literal_pattern()
        above = None
        lines = body.split("\n")
        for line in lines[: self.max_lines]:
            found = _MATCH_LINE.fullmatch(line)
            if found is None:
                shown.append(f"{line}\n", _NOTE if line == "--" else "")
                continue
            if found["path"] != above:
                above = found["path"]
                shown.append(f"{above}\n", _FILE)
            is_match = found["mark"] == ":"
            text = Text(found["text"], "" if is_match else "dim")
            if wanted is not None and is_match:
                text.highlight_regex(wanted, "bold yellow")
            shown.append(f"{found['line']:>6} ", _NUMBER).append(text).append("\n")
        shown.rstrip()
        return _group(self._counted(shown, lines), notes)

    def listing(self) -> RenderableType:
        """Show names, folders and links so that they can be told apart."""
        body, notes = _split_notes(self.text)
        shown = Text(overflow="fold")
        lines = body.split("\n")
        for line in lines[: self.max_lines]:
            style = _FOLDER if line.endswith("/") else _LINK if "@ -> " in line else ""
            shown.append(f"{line}\n", style)
        shown.rstrip()
        return _group(self._counted(shown, lines), notes)

    def _literal_pattern(self) -> re.Pattern[str] | None:
        """Return what to mark in matching lines; a real expression is not run on this side."""
        pattern = argument(self.params, "pattern")
        is_literal = argument(self.params, "literal") is True
        if not isinstance(pattern, str) or not (is_literal or _LITERAL.fullmatch(pattern)):
            return None
        ignore_case = argument(self.params, "ignore_case") is True
        return re.compile(re.escape(pattern), re.IGNORECASE if ignore_case else 0)

    def _first(self, text: str) -> RenderableType:
        lines = text.split("\n")
        shown = Text("\n".join(lines[: self.max_lines]), overflow="fold")
        return self._counted(shown, lines)

    def _counted(self, shown: Text, lines: list[str]) -> RenderableType:
        """Return what is shown of so many lines, and how many are not."""
        if self.max_lines is None or len(lines) <= self.max_lines:
            return shown
        return Group(shown, more_lines(len(lines) - self.max_lines))

    def _last(self, text: str) -> RenderableType:
        lines = text.split("\n")
        if self.max_lines is None or len(lines) <= self.max_lines:
            return Text(text, overflow="fold")
        return Group(
            more_lines(len(lines) - self.max_lines),
            Text("\n".join(lines[-self.max_lines :]), overflow="fold"),
        )


_BODIES: dict[str, Callable[[_View], RenderableType]] = {
    "read": _View.read,
    "write": _View.write,
    "edit": _View.edit,
    "bash": _View.bash,
    "grep": _View.grep,
    "find": _View.listing,
    "ls": _View.listing,
}


def _group(body: RenderableType, *notes: str) -> RenderableType:
    texts = [Text(note, _NOTE, overflow="fold") for note in notes if note]
    return Group(body, *texts) if texts else body


def _split_notes(text: str) -> tuple[str, str]:
    """Return a result's own text, and the notes in brackets that follow it."""
    parts = text.split("\n\n")
    first = next((at for at in range(len(parts), 0, -1) if not _is_note(parts[at - 1])), 0)
    return "\n\n".join(parts[:first]), "\n".join(parts[first:])


def _is_note(part: str) -> bool:
    return part.startswith("[") and part.endswith("]")


def _size(size: int) -> str:
    from toolkit.texts.truncate import format_size

    return str(format_size(size))
