"""Between a file's bytes and text: encodings told or guessed, line endings, what may be shown."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from toolkit.texts.match import Edited

__all__ = [
    "DisplayText",
    "FileText",
    "LineEndings",
    "decode_for_display",
    "decode_for_editing",
    "encoding_label",
    "escape_name",
    "escape_names",
    "line_endings",
    "without_terminal_codes",
]

LineEndings = Literal["lf", "crlf", "mixed", "none"]

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What files that are not UTF-8 are found in, the likelier first. More would make the guess worse.
_CANDIDATES = ["cp1252", "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1251", "koi8_r"]
_TWO_SCRIPTS = re.compile("[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z]")
_GUESS_BYTES = 16 * 1024
_NAME_NEEDS_QUOTES = re.compile(
    r"[\x00-\x1f\"\\\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|^\s|\s$|^$"
)
_MAY_NEED_QUOTES = re.compile(r"[\"\\ ]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_TERMINAL = str.maketrans({"\x00": "\u2400", "\x1b": "\u241b", "\x9b": "\u241b["})


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayText:
    """Text for a model to see.

    Attributes:
        text: The text; what cannot be decoded is U+FFFD.
        encoding: What it was decoded from.
        guessed: True when nothing but the bytes themselves spoke for that encoding.
        damaged: True when some bytes do not fit the encoding.
    """

    text: str
    encoding: str
    guessed: bool = False
    damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A whole file as text that encodes back to the same bytes.

    Attributes:
        text: The content without its byte order mark. Bytes that do not fit stand as lone
            surrogates.
        encoding: What to encode it with.
        mark: The byte order mark, or b"".
        guessed: True when nothing but the bytes themselves spoke for that encoding.
        ascii_only: True when it is in some other encoding, which cannot be told well enough to
            write more than ASCII in it.
    """

    text: str
    encoding: str
    mark: bytes = b""
    guessed: bool = False
    ascii_only: bool = False

    def cannot_encode(self, text: str) -> str | None:
        """Return the first character of new text that the file cannot hold, or None."""
        codec = "ascii" if self.ascii_only else _codec(self.encoding)
        try:
            text.encode(codec)
        except UnicodeEncodeError as error:
            return text[error.start]
        return None

    def splice(self, content: bytes, edited: Edited) -> bytes:
        """Return the file's new bytes after edits of `text`, given its bytes before."""
        if self.mark or not self.text.isascii():
            return self.encode(edited.text)
        # A character is a byte: the new content is made in one copy.
        old = memoryview(content)
        parts: list[bytes | memoryview] = []
        at = 0
        for each in edited.replacements:
            parts += (old[at : each.start], self.encode(each.text))
            at = each.end
        parts.append(old[at:])
        return b"".join(parts)

    def encode(self, text: str) -> bytes:
        """Return the file's new bytes for `text`, with the mark."""
        return self.mark + text.encode(_codec(self.encoding), _errors(self.encoding))


def decode_for_display(data: bytes, encoding: str = "utf-8") -> DisplayText:
    """Decode whole lines of a file.

    Args:
        data: Raw bytes without a byte order mark.
        encoding: What the file's byte order mark told, "utf-8" when it has none.
    """
    codec = _codec(encoding)
    try:
        return DisplayText(text=data.decode(codec), encoding=encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8":
            return DisplayText(text=data.decode(codec, "replace"), encoding=encoding, damaged=True)
    guess = _guess(data)
    text = data.decode(guess, "replace")
    return DisplayText(text=text, encoding=guess, guessed=True, damaged="\ufffd" in text)


def decode_for_editing(data: bytes) -> FileText | None:
    """Decode a whole file so that what is not touched encodes to the same bytes again.

    Returns:
        The text, or None when a byte order mark promises an encoding that the bytes break.
    """
    mark, encoding = next(
        ((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8")
    )
    content = data[len(mark) :]
    if encoding in ("utf-8", "utf-8-sig"):
        try:
            return FileText(text=content.decode(), encoding=encoding, mark=mark)
        except UnicodeDecodeError:
            guess = encoding if mark else _guess(content)
    else:
        guess = encoding
    read = _reversible(content, guess, mark)
    if read is None and encoding == "utf-8":
        read = _reversible(content, encoding, mark, ascii_only=True)
    return read


def line_endings(text: str) -> LineEndings:
    """Tell how the lines of `text` end; a carriage return counts only before LF."""
    crlf = text.count("\r\n") if "\r" in text else 0
    if not crlf:
        return "lf" if "\n" in text else "none"
    return "crlf" if crlf == text.count("\n") else "mixed"


def encoding_label(encoding: str) -> str:
    """Return an encoding's name for people: "UTF-16 LE", "cp1252"."""
    if not encoding.startswith("utf-"):
        return encoding
    return encoding.upper().replace("-SIG", " with BOM").replace("-LE", " LE").replace("-BE", " BE")


def without_terminal_codes(text: str) -> str:
    """Make text safe to show: NUL and ESC as symbols, lone surrogates as U+FFFD."""
    text = text.translate(_TERMINAL) if _has_terminal_codes(text) else text
    return (
        text
        if _is_utf8(text)
        else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def escape_name(name: str) -> str:
    r"""Return a file's name for a list of one name a line.

    A plain name stands as it is. One with a control character, a line separator, a quote, a
    backslash, a blank at an end or bytes that are not UTF-8 (given as lone surrogates, PEP 383)
    is put in double quotes, with `\n`, `\t`, `\xNN` for a byte and `\uNNNN` inside.
    """
    if not _NAME_NEEDS_QUOTES.search(name):
        return name
    return '"' + "".join(_escaped(character) for character in name) + '"'


def escape_names(names: Sequence[str]) -> list[str]:
    """Return what `escape_name` does for each of many names; a look at all at once often does."""
    joined = "".join(names)
    plain = joined.isascii() and joined.isprintable() and not _MAY_NEED_QUOTES.search(joined)
    return list(names) if plain and all(names) else [escape_name(name) for name in names]


def _escaped(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if not _NAME_NEEDS_QUOTES.match(character) or character == " ":
        return character
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def _codec(encoding: str) -> str:
    # The mark is not part of the data here, so Python's "utf-8-sig" would add or eat one.
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _errors(encoding: str) -> str:
    return "surrogatepass" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"


def _reversible(
    content: bytes, encoding: str, mark: bytes, *, ascii_only: bool = False
) -> FileText | None:
    try:
        text = content.decode(_codec(encoding), _errors(encoding))
        read = FileText(
            text=text,
            encoding=encoding,
            mark=mark,
            guessed=not encoding.startswith("utf-"),
            ascii_only=ascii_only,
        )
        return read if read.encode(text) == mark + content else None
    except UnicodeError:
        return None


def _guess(data: bytes) -> str:
    """Name the encoding that bytes which are not UTF-8 are most likely in."""
    sample = _telling_lines(data)
    if b"\x00" in data[:8192] or _mostly_utf8(sample):
        return "utf-8"
    # 30 ms to import, and hardly a file needs it.
    from charset_normalizer import from_bytes

    best = from_bytes(
        sample, cp_isolation=_CANDIDATES, preemptive_behaviour=False, enable_fallback=False
    ).best()
    # "caf" and one more letter speak for no script; a word in two of them is not written.
    plausible = best is not None and not _TWO_SCRIPTS.search(str(best))
    encoding = best.encoding if best is not None and plausible else "cp1252"
    for candidate in (encoding, "cp1252"):
        try:
            data.decode(candidate)
        except UnicodeDecodeError:
            continue
        return candidate
    return "latin-1"


def _telling_lines(data: bytes) -> bytes:
    """Return lines that are not ASCII, up to a bound; the others say nothing about an encoding."""
    lines: list[bytes] = []
    size = 0
    for line in re.finditer(rb"[^\n\x80-\xff]*+[\x80-\xff][^\n]*+\n?", data):
        lines.append(line[0][: _GUESS_BYTES - size])
        size += len(lines[-1])
        if size >= _GUESS_BYTES:
            break
    return b"".join(lines)


def _mostly_utf8(data: bytes) -> bool:
    """Tell UTF-8 with a few broken places from text that only happens to look like it."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return sum(1 for character in text if character > "\x7f") - broken > 2 * broken


def _has_terminal_codes(text: str) -> bool:
    return "\x00" in text or "\x1b" in text or "\x9b" in text


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
