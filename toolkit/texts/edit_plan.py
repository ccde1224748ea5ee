"""An edit worked out on a file's bytes: the new bytes, the diff, and errors that help. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.failures import ToolFailure
from toolkit.texts.closest import describe_closest
from toolkit.texts.diff import Diff, unified_diff
from toolkit.texts.match import Edit, Edited, EditError, EditNotFound, apply_edits
from toolkit.texts.text import FileText, decode_for_editing, encoding_label, line_endings

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EditPlan", "plan_edit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan:
    """What to write, and what to tell about it."""

    content: bytes
    file: FileText
    edited: Edited
    diff: Diff

    def details(self) -> dict[str, Any]:
        """Return what programs are told."""
        return {
            "diff": self.diff.text,
            "first_changed_line": self.diff.first_changed_line,
            "added_lines": self.diff.added,
            "removed_lines": self.diff.removed,
            "replacements": len(self.edited.replacements),
            "tolerant_edits": list(self.edited.tolerant),
            "encoding": self.file.encoding,
            "encoding_guessed": self.file.guessed,
            "line_endings": line_endings(self.file.text),
            "bytes": len(self.content),
        }

    def notes(self) -> list[str]:
        """Return what a model should know beyond that it worked."""
        notes = [
            f"edits[{number}] is not in the file exactly as given: it was matched with quotes, "
            "dashes and blanks taken as alike, and the file's own text there was replaced."
            for number in self.edited.tolerant
        ]
        if self.file.guessed:
            notes.append(
                f"The file is not UTF-8; it was taken as {encoding_label(self.file.encoding)}, "
                "which is a guess."
            )
        return notes


def plan_edit(content: bytes, edits: Sequence[Edit], given: str) -> EditPlan:
    """Work out what a file is to hold after its edits; every other byte stays.

    Args:
        content: The file's bytes.
        edits: What to replace.
        given: The file's path as the model gave it, for messages and the diff.

    Raises:
        ToolFailure: An edit cannot be made, or the file cannot hold its new text.
    """
    file = decode_for_editing(content)
    if file is None:
        raise ToolFailure(
            f"{given}: begins with a byte order mark, but its content is not in that encoding, so "
            "it cannot be edited without damage",
            details={"path": given},
        )
    try:
        edited = apply_edits(file.text, edits)
    except EditError as error:
        raise _told(error, file, edits, given) from error
    _refuse_foreign_characters(file, edits, given)
    return EditPlan(
        content=file.splice(content, edited),
        file=file,
        edited=edited,
        diff=unified_diff(file.text, edited.replacements, given),
    )


def _told(error: EditError, file: FileText, edits: Sequence[Edit], given: str) -> ToolFailure:
    text = f"{given}: {error}"
    if isinstance(error, EditNotFound):
        if not file.text:
            text += "; the file is empty"
        else:
            closest = describe_closest(file.text, edits[error.edit].old_text)
            text += f".\n{closest}" if closest else "; nothing in it is like it"
    return ToolFailure(
        f"{text}\nNothing was changed.",
        details={"path": given, "edit": error.edit},
    )


def _refuse_foreign_characters(file: FileText, edits: Sequence[Edit], given: str) -> None:
    for number, edit in enumerate(edits):
        character = file.cannot_encode(edit.new_text)
        if character is not None:
            name = f"{character!r} (U+{ord(character):04X})"
            held = (
                "is not UTF-8 and takes only ASCII"
                if file.ascii_only
                else (
                    f"is {encoding_label(file.encoding)}{' by a guess' if file.guessed else ''} "
                    "and cannot hold it"
                )
            )
            raise ToolFailure(
                f"{given}: edits[{number}]: new_text has {name}; the file {held}. "
                "Nothing was changed.",
                details={"path": given, "edit": number},
            )
