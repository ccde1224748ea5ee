"""Options of a command line, as getopt_long takes them apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.policy.words import Word

__all__ = ["Options", "read_options"]


@dataclass(slots=True)
class Options:
    """A command line taken apart.

    Attributes:
        short: Letters given, each with its value (None for none).
        long: Long names given, without dashes and maybe shortened, each with its value.
        operands: The other words.
        unclear: True when a word that is known only at run time may be an option.
        globbed: True when a wildcard may find a file that is named like an option.
        before: How many options stand before the first operand.
    """

    short: list[tuple[str, Word | None]] = field(default_factory=list)
    long: list[tuple[str, Word | None]] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)
    unclear: bool = False
    globbed: bool = False
    before: int = 0

    def has(self, letters: str, *names: str) -> bool:
        """Whether one of the letters or long names (also shortened) is given."""
        return any(letter in letters for letter, _ in self.short) or any(
            name.startswith(given) for given, _ in self.long for name in names
        )

    def values(self, letters: str, *names: str) -> list[Word]:
        """Return the values given for the letters or long names."""
        found = [value for letter, value in self.short if letter in letters]
        found += [value for given, value in self.long if any(n.startswith(given) for n in names)]
        return [value for value in found if value is not None]


def read_options(
    words: Sequence[Word], short: str = "", long: Iterable[str] = (), *, permute: bool = True
) -> Options:
    """Take apart the arguments of a program.

    Args:
        words: The arguments, without the program.
        short: Letters that take a value.
        long: Long names that take a value.
        permute: Whether options may stand behind operands, too.
    """
    options = Options()
    long = tuple(long)
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        text = word.text
        if text is None or text == "-" or not text.startswith("-"):
            options.unclear |= word.may_be_option
            options.globbed |= word.finds_options
            options.operands.append(word)
            if not permute:
                options.operands += words[at:]
                break
            continue
        options.before += not options.operands
        if text == "--":
            options.operands += words[at:]
            break
        if text.startswith("--"):
            name, equals, _ = text[2:].partition("=")
            value = word.rest(len(name) + 3) if equals else None
            if value is None and any(each.startswith(name) for each in long) and at < len(words):
                value = words[at]
                at += 1
            options.long.append((name, value))
            continue
        at = _read_letters(options, words, at, short)
    return options


def _read_letters(options: Options, words: Sequence[Word], at: int, short: str) -> int:
    word = words[at - 1]
    for number, letter in enumerate(word.text or "", start=1):
        if number == 1:
            continue
        if letter not in short:
            options.short.append((letter, None))
            continue
        value: Word | None = None
        if number < len(word.text or ""):
            value = word.rest(number)
        elif at < len(words):
            value = words[at]
            at += 1
        options.short.append((letter, value))
        break
    return at
