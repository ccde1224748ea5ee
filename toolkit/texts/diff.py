"""A unified diff made from the replaced spans alone: no work on the rest of the file. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from toolkit.texts.text import without_terminal_codes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.texts.match import Replacement

__all__ = ["Diff", "unified_diff"]

_CONTEXT = 3
_MOST_LINE_CHARS = 400
# Beyond this a hunk is shown as all old lines, then all new ones: difflib is quadratic.
_MOST_COMPARED = 1000
_MOST_DIFF_CHARS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What an edit did, for people and programs.

    Attributes:
        text: Unified diff with three lines of context; long lines are cut around the change.
        first_changed_line: 1-based, in the new text.
        added: Lines added.
        removed: Lines removed.
    """

    text: str
    first_changed_line: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunk:
    """Replacements whose lines, with context, touch: whole lines `start:end` of the old text."""

    start: int
    end: int
    replacements: list[Replacement]

    def after(self, old: str) -> str:
        """Return what stands in its place in the new text."""
        parts: list[str] = []
        at = self.start
        for each in self.replacements:
            parts += (old[at : each.start], each.text)
            at = each.end
        return "".join((*parts, old[at : self.end]))


def unified_diff(old: str, replacements: Sequence[Replacement], path: str) -> Diff:
    """Describe replacements in `old`.

    Args:
        old: The text before.
        replacements: At least one; in order of place, not overlapping.
        path: The file's name for the head of the diff.
    """
    out = [f"--- {path}", f"+++ {path}"]
    room = _MOST_DIFF_CHARS
    line, at = 1, 0
    added = removed = first_changed = 0
    for hunk in _hunks(old, replacements):
        line += old.count("\n", at, hunk.start)
        at = hunk.start
        marked, skipped = _trimmed(
            _compare(_lines(old[hunk.start : hunk.end]), _lines(hunk.after(old)))
        )
        plus = sum(mark == "+" for mark, _ in marked)
        minus = sum(mark == "-" for mark, _ in marked)
        old_line, new_line = line + skipped, line + skipped + added - removed
        if not first_changed:
            first_changed = new_line + _leading(marked)
        if room > 0:
            before, after = len(marked) - plus, len(marked) - minus
            head = f"@@ -{_range(old_line, before)} +{_range(new_line, after)} @@"
            for shown in (head, *_shown(marked)):
                if (room := room - len(shown)) <= 0:
                    out.append("... the rest of the diff is left out")
                    break
                out.append(shown)
        added, removed = added + plus, removed + minus
    return Diff(
        text=without_terminal_codes("\n".join(out)) + "\n",
        first_changed_line=first_changed,
        added=added,
        removed=removed,
    )


def _hunks(old: str, replacements: Sequence[Replacement]) -> Iterator[_Hunk]:
    """Group replacements; each place of a long line is looked at once, however many are in it."""
    group: list[Replacement] = []
    start = core_end = end = 0
    for each in replacements:
        if not group or each.start >= core_end:
            first = _lines_back(old, each.start, _CONTEXT)
            if group and first > end:
                yield _Hunk(start=start, end=end, replacements=group)
                group = []
            if not group:
                start = first
        if each.end >= core_end:
            core_end = _lines_on(old, each.end, 1)
            end = _lines_on(old, core_end, _CONTEXT)
        group.append(each)
    if group:
        yield _Hunk(start=start, end=end, replacements=group)


def _lines_back(text: str, position: int, count: int) -> int:
    """Return the start of the line that is `count` lines above the one at `position`."""
    for _ in range(count + 1):
        position = text.rfind("\n", 0, position)
        if position < 0:
            break
    return position + 1


def _lines_on(text: str, position: int, count: int) -> int:
    """Return where `count` lines from `position` on have ended."""
    for _ in range(count):
        position = text.find("\n", position) + 1
        if not position:
            return len(text)
    return position


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _compare(before: list[str], after: list[str]) -> list[tuple[str, str]]:
    """Return every line with its mark: " ", "-" or "+"."""
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    marked = [(" ", line) for line in before[:head]]
    # What is left of one line each, or on one side only, has nothing in common.
    if min(len(old), len(new)) and 2 < len(old) + len(new) <= _MOST_COMPARED:
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                marked += [(" ", line) for line in old[i1:i2]]
            else:
                marked += [("-", line) for line in old[i1:i2]]
                marked += [("+", line) for line in new[j1:j2]]
    else:
        marked += [("-", line) for line in old] + [("+", line) for line in new]
    return marked + [(" ", line) for line in before[len(before) - tail :]]


def _trimmed(marked: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], int]:
    """Cut the context to its size; return how many lines went from the front too."""
    front = max(0, _leading(marked) - _CONTEXT)
    back = max(0, _leading(marked[::-1]) - _CONTEXT)
    return marked[front : len(marked) - back], front


def _leading(marked: list[tuple[str, str]]) -> int:
    """Count the unchanged lines in front."""
    return next((number for number, (mark, _) in enumerate(marked) if mark != " "), len(marked))


def _common(first: list[str], second: list[str]) -> int:
    count = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        count += 1
    return count


def _range(line: int, count: int) -> str:
    """Write a range as `diff -u` does: an empty one names the line before it."""
    return f"{line}" if count == 1 else f"{line if count else line - 1},{count}"


def _shown(marked: list[tuple[str, str]]) -> Iterator[str]:
    endings = {line.endswith("\r\n") for _, line in marked if line.endswith("\n")}
    for (mark, line), column in zip(marked, _columns(marked), strict=True):
        yield from _one_line(mark, line, column, show_returns=len(endings) > 1)


def _columns(marked: list[tuple[str, str]]) -> list[int]:
    """Find where each long line changes, taking removed and added lines in pairs."""
    columns = [0] * len(marked)
    removed: deque[int] = deque()
    previous = " "
    for number, (mark, line) in enumerate(marked):
        if mark == "-":
            if previous != "-":
                removed.clear()
            removed.append(number)
        elif mark == "+" and removed:
            partner = removed.popleft()
            if max(len(line), len(marked[partner][1])) > _MOST_LINE_CHARS:
                column = _first_difference(marked[partner][1], line)
                columns[number] = columns[partner] = column
        elif mark == " ":
            removed.clear()
        previous = mark
    return columns


def _one_line(mark: str, line: str, column: int, *, show_returns: bool) -> Iterator[str]:
    body = line.removesuffix("\n")
    if body.endswith("\r") and body != line:
        body = body[:-1] + ("\u240d" if show_returns else "")
    yield mark + _around(body, column)
    if not line.endswith("\n"):
        yield "\\ No newline at end of file"


def _around(line: str, column: int) -> str:
    if len(line) <= _MOST_LINE_CHARS:
        return line
    start = max(0, min(column - _MOST_LINE_CHARS // 4, len(line) - _MOST_LINE_CHARS))
    end = start + _MOST_LINE_CHARS
    left = f"[{start} characters] ..." if start else ""
    right = f"... [{len(line) - end} characters]" if end < len(line) else ""
    return f"{left}{line[start:end]}{right}"


def _first_difference(first: str, second: str) -> int:
    """Return where two texts part, by halving: comparing slices runs at memory speed."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
