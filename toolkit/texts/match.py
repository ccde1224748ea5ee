"""Where the texts of an edit stand in a file, and the file with them replaced. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from toolkit.texts.folding import Space, blanks_end, fold_line_endings, fold_look_alikes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "Edit",
    "EditError",
    "EditNotFound",
    "Edited",
    "Replacement",
    "apply_edits",
    "line_number",
]

_MOST = 100
_LINES_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One text to replace by another."""

    old_text: str
    new_text: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One span of the original and what takes its place.

    Attributes:
        start: Where the span begins in the original text.
        end: Where it ends.
        text: What stands there afterwards.
        edit: 0-based number of the edit that it belongs to.
    """

    start: int
    end: int
    text: str
    edit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A text after all its edits.

    Attributes:
        before: The text before them.
        replacements: What was replaced, in order of place.
        tolerant: 0-based numbers of the edits that matched only tolerantly.
    """

    before: str
    replacements: tuple[Replacement, ...]
    tolerant: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The text after them."""
        parts: list[str] = []
        at = 0
        for each in self.replacements:
            parts += (self.before[at : each.start], each.text)
            at = each.end
        parts.append(self.before[at:])
        return "".join(parts)


class EditError(Exception):
    """An edit cannot be made; nothing was changed.

    Args:
        edit: 0-based number of the edit.
        reason: Why, as a sentence part.
    """

    def __init__(self, edit: int, reason: str) -> None:
        super().__init__(edit, reason)
        self.edit = edit
        self.reason = reason

    def __str__(self) -> str:
        return f"edits[{self.edit}]: {self.reason}"


class EditNotFound(EditError):
    """An edit's old text is nowhere in the file."""


def apply_edits(text: str, edits: Sequence[Edit]) -> Edited:
    """Replace every edit's old text by its new text, all in the original, or none.

    An old text is looked for as it stands, CRLF and LF alike; only where it is nowhere, in the
    tolerant space (NFKC, quotes, dashes, Unicode blanks, blanks at the ends of lines). It must
    be there once, overlapping occurrences counted, unless `replace_all`. New text takes the line
    ending of the line that it starts on. Every character outside the spans stays as it is.

    Raises:
        EditNotFound: An old text is nowhere.
        EditError: An old text is empty or ambiguous; two edits overlap; an edit changes nothing.
    """
    for number, edit in enumerate(edits):
        if not edit.old_text:
            raise EditError(number, "old_text must not be empty")
        if edit.old_text == edit.new_text:
            raise EditError(number, "no change: old_text and new_text are the same")
    finder = _Finder(text)
    replacements: list[Replacement] = []
    tolerant: list[int] = []
    for number, edit in enumerate(edits):
        spans, exact = finder.find(number, edit)
        if not exact:
            tolerant.append(number)
        made = list(_replacements(text, spans, edit.new_text, number))
        if all(text[each.start : each.end] == each.text for each in made):
            raise EditError(number, "no change: the file has new_text there already")
        replacements += made
    replacements.sort(key=lambda each: (each.start, each.end))
    _refuse_overlaps(text, replacements)
    return Edited(
        before=text,
        replacements=tuple(replacements),
        tolerant=tuple(tolerant),
    )


class _Finder:
    """Looks for old texts in one file, folding it at most once for each kind of folding."""

    def __init__(self, text: str) -> None:
        self._plain = Space(text)
        self._folded = fold_line_endings(self._plain)
        self._loose: Space | None = None

    def find(self, number: int, edit: Edit) -> tuple[list[tuple[int, int]], bool]:
        """Return an edit's spans in the original, and whether they match exactly."""
        old = edit.old_text
        # Whoever writes a carriage return may mean it; CRLF stands for LF only after that.
        if "\r" in old:
            spans = self._spans(number, edit, _occurrences(self._plain, old, edit.replace_all))
            if spans:
                return spans, True
        old = old.replace("\r\n", "\n")
        spans = self._spans(number, edit, _occurrences(self._folded, old, edit.replace_all))
        if spans:
            return spans, True
        spans = self._spans(number, edit, self._tolerant(old, edit.replace_all))
        if not spans:
            raise EditNotFound(number, "old_text is not in the file")
        return spans, False

    def _tolerant(self, old: str, every: bool) -> Iterable[tuple[int, int]]:  # noqa: FBT001 - one of two ways
        self._loose = self._loose or fold_look_alikes(self._folded)
        needle = fold_look_alikes(Space(old), keep_last_blanks=True).text
        spans = list(islice(_occurrences(self._loose, needle, every), None if every else _MOST))
        if spans or needle == (bare := needle.rstrip(" \t")):
            return spans
        return _occurrences(self._loose, bare, every, to_line_end=True)

    def _spans(
        self, number: int, edit: Edit, found: Iterable[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        if edit.replace_all:
            return list(found)
        spans = list(islice(found, _MOST))
        if len(spans) > 1:
            raise EditError(number, _ambiguous(self._plain.text, spans))
        return spans


def _occurrences(
    space: Space,
    needle: str,
    apart: bool,  # noqa: FBT001 - one of two ways
    *,
    to_line_end: bool = False,
) -> Iterator[tuple[int, int]]:
    """Yield spans in the original, in order; overlapping ones too unless `apart`."""
    text = space.text
    at = text.find(needle) if needle else -1
    while at >= 0:
        end = at + len(needle)
        span = space.original(at, end)
        if span is not None and (not to_line_end or text[end : end + 1] in ("", "\n")):
            yield (span[0], blanks_end(space, span[1])) if to_line_end else span
            at = text.find(needle, end if apart else at + 1)
        else:
            at = text.find(needle, at + 1)


def _ambiguous(text: str, spans: list[tuple[int, int]]) -> str:
    count = f"{_MOST} or more" if len(spans) == _MOST else str(len(spans))
    lines = sorted({line_number(text, start) for start, _ in spans[:_LINES_NAMED]})
    more = ", ..." if len(spans) > _LINES_NAMED else ""
    where = "line" if len(lines) == 1 and not more else "lines"
    return (
        f"old_text occurs {count} times ({where} {', '.join(map(str, lines))}{more}); "
        "give more of the text around it, or set replace_all"
    )


def line_number(text: str, position: int) -> int:
    """Return the 1-based number of the line that `position` is on."""
    return text.count("\n", 0, position) + 1


def _replacements(
    text: str, spans: list[tuple[int, int]], new_text: str, number: int
) -> Iterator[Replacement]:
    """Give each span its text, in the line ending of the line that the span starts on."""
    plain = new_text.replace("\r\n", "\n")
    newline = -1
    for start, end in spans:
        # The spans are in order, so each line's end is looked for once.
        if "\n" in plain and newline < start and (newline := text.find("\n", start)) < 0:
            newline = len(text)
        yield Replacement(
            start=start, end=end, text=_in_ending(text, newline, plain, new_text), edit=number
        )


def _in_ending(text: str, newline: int, plain: str, new_text: str) -> str:
    if "\n" not in plain:
        return new_text
    if newline == len(text):
        # The last line has no ending; it would have that of the line before.
        newline = text.rfind("\n")
        if newline < 0:
            return new_text
    return plain.replace("\n", "\r\n") if text[newline - 1 : newline] == "\r" else plain


def _refuse_overlaps(text: str, replacements: list[Replacement]) -> None:
    for first, second in pairwise(replacements):
        if second.start < first.end:
            low, high = sorted((first.edit, second.edit))
            raise EditError(
                high,
                f"overlaps edits[{low}] at line {line_number(text, second.start)}; "
                "make one edit of the two",
            )
