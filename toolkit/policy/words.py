"""One word of a shell command: what it will be when the command runs, as far as that is known."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

__all__ = ["Piece", "Word", "expand_braces", "joined", "literal", "unescaped"]

_MOST_ALTERNATIVES = 64
_MOST_SHOWN = 120
_BRACED = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})"
    r"|U([0-9A-Fa-f]{1,8})|(.))",
    re.DOTALL,
)
_UNDECODED = "\ufffd"
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


@dataclass(frozen=True, slots=True)
class Word:
    """A word.

    Attributes:
        text: The word, quotes and escapes resolved; None when it is known only at run time.
        shown: The word as it was written, cut.
        home: True when its leading "~" means the home folder.
        glob: True when the shell expands a wildcard in it; `text` holds the wildcard itself.
        prefix: What is known of its beginning when `text` is None.
    """

    text: str | None
    shown: str
    home: bool = False
    glob: bool = False
    prefix: str = ""

    @property
    def may_be_option(self) -> bool:
        """Whether it is known only at run time and could be an option then."""
        return self.text is None and self.prefix[:1] in ("", "-")

    @property
    def finds_options(self) -> bool:
        """Whether it is a wildcard that finds a file called "-rf" too."""
        return self.glob and (self.text or "")[:1] in ("*", "?", "[")

    def rest(self, start: int) -> Word:
        """Return the word without its first `start` characters: what follows "of=" in "of=a"."""
        text = None if self.text is None else self.text[start:]
        return replace(self, text=text, home=False, prefix=self.prefix[start:])


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word.

    Attributes:
        text: What it stands for, or None.
        quoted: True when wildcards and braces in it mean themselves.
        folder: True for a variable's value that is known only as the beginning of a path.
    """

    text: str | None
    quoted: bool
    folder: bool = False


def literal(text: str) -> Word:
    """Return a word that is just `text`."""
    return Word(text, text[:_MOST_SHOWN])


def joined(pieces: list[Piece], shown: str) -> list[Word]:
    """Put the pieces of a word together; braces can make several words of it."""
    shown = shown[:_MOST_SHOWN]
    known: list[str] = []
    unquoted: list[str] = []
    home = False
    for number, piece in enumerate(pieces):
        if piece.text is None or (piece.folder and number > 0):
            return [Word(None, shown, prefix="".join(known), home=home)]
        if number == 0:
            home = piece.text[:1] == "~" and not piece.quoted
        known.append(piece.text)
        unquoted.append("" if piece.quoted else piece.text)
    text, bare = "".join(known), "".join(unquoted)
    if "{" in bare and _BRACED.search(bare):
        if bare != text or home or (alternatives := expand_braces(text)) is None:
            return [Word(None, shown, glob=True)]
        return [Word(each, shown, glob=_wild(each)) for each in alternatives]
    return [Word(text, shown, home=home, glob=_wild(bare))]


def expand_braces(text: str) -> list[str] | None:
    """Return what `a{b,c}` stands for, or None when that is a range, or too much to write out."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        current = waiting.pop()
        found = _BRACED.search(current)
        if found is None:
            done.append(current)
            continue
        parts = found.group()[1:-1].split(",")
        if len(parts) < 2 or len(done) + len(waiting) + len(parts) > _MOST_ALTERNATIVES:
            return None
        before, after = current[: found.start()], current[found.end() :]
        waiting += [before + part + after for part in reversed(parts)]
    return done


def unescaped(raw: str, *, kind: str) -> list[Piece]:
    r"""Resolve the escapes of a bare word ("word"), of "..." ("string") or of $'...' ("ansi")."""
    if kind == "ansi":
        text = _ANSI_ESCAPE.sub(_ansi, raw)
        return [Piece(None if _UNDECODED in text else text.partition("\0")[0], quoted=True)]
    if "\\" not in raw:
        return [Piece(raw, quoted=kind == "string")]
    if kind == "string":
        return [Piece(re.sub(r"\\([$`\"\\\n])", _kept, raw), quoted=True)]
    pieces: list[Piece] = []
    for bare, escaped in re.findall(r"([^\\]+)|\\(.?)", raw, re.DOTALL):
        if bare:
            pieces.append(Piece(bare, quoted=False))
        elif escaped != "\n":
            pieces.append(Piece(escaped, quoted=True))
    return pieces


def _kept(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _ansi(found: re.Match[str]) -> str:
    letter, octal, *hexadecimal, other = found.groups()
    if letter:
        return _ANSI_LETTERS[letter]
    for digits, base in ((octal, 8), *((each, 16) for each in hexadecimal)):
        if digits:
            # Beyond ASCII the shell puts bytes together, in the locale's way.
            return chr(code) if (code := int(digits, base)) < 0x80 else _UNDECODED
    return _UNDECODED if other == "c" else f"\\{other}"


def _wild(text: str) -> bool:
    return any(character in text for character in "*?[")
