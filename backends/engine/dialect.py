r"""The one regular expression dialect of every search, and how each engine is told of it.

The dialect is the common part of ripgrep's syntax and Python's `re`:

- characters, `.`, `[...]` with ranges and negation, `\d \w \s \D \W \S`
- `\t \r \f \v \a \xHH \x{H} \uHHHH \u{H} \UHHHHHHHH`, and `\` before punctuation other than
  `<` and `>`
- `^ $ \b \B`; groups `(...)`, `(?:...)`, `(?P<name>...)`, `(?i:...)`, `(?-i:...)`; `(?i)` at the
  start
- `* + ? {m} {m,} {m,n}` and their lazy forms, `|`; a `{` that begins no quantifier is itself

It is matched against one line at a time, without its ending (LF or CRLF). All sets are of
characters: `\w` is a letter, mark, decimal digit, connector or joiner of any script, `\s` what
Unicode calls white space, `\d` a decimal digit, and case is folded one character to one. Bytes
that are not UTF-8 are matched by nothing. Everything else is refused with a reason, never
guessed at.
"""

import re

from backends.engine.dialect_nodes import (
    Chars,
    Sequence,
    has_place_after_end,
    longest_run,
    open_repeats,
)
from backends.engine.dialect_parser import NO_LINE_FEED, NO_NUL, read
from backends.engine.dialect_targets import ASCII, ERE, RG, TEXT, CannotSay, emit
from backends.engine.faults import Fault

MAX_PATTERN = 10000


def parse(pattern, literal=False, ignore_case=False):
    """Return the Regex that `pattern` (str) stands for.

    Raises:
        Fault: "invalid_pattern" with the pattern, what is wrong and what would be right, and where.
    """
    _refuse_impossible(pattern)
    if literal:
        return Regex(Sequence([Chars.literal(char, ignore_case) for char in pattern]))
    return Regex(read(pattern, ignore_case))


def _refuse_impossible(pattern):
    for char, reason in (
        ("\n", NO_LINE_FEED),
        ("\0", NO_NUL),
    ):
        if char in pattern:
            raise Fault("invalid_pattern", pattern, reason, pattern.index(char))
    if len(pattern) > MAX_PATTERN:
        reason = "it is longer than %d characters" % MAX_PATTERN
        raise Fault("invalid_pattern", pattern[:100] + "...", reason, None)
    for at, char in enumerate(pattern):
        if "\ud800" <= char <= "\udfff":
            clean = pattern.encode("utf-8", "replace").decode("utf-8")
            raise Fault("invalid_pattern", clean, "this is not a character of Unicode", at)


class Regex:
    """A parsed pattern.

    Attributes:
        required: Bytes that every matching line holds; b"" when none are known.
        folded: True when `required` is in lower case and the line may be in any.
        plain: True when a line matches exactly if it holds `required`.
        is_tame: True when Python's `re` needs no time worth mentioning for any line.
        rg: The pattern for ripgrep, without --crlf. It finds every matching line, and a few more
            where the line ends in CR or holds characters newer than Unicode 15: check them with
            `search`.
    """

    def __init__(self, node):
        self._node = node
        self._compiled = {}
        # Where a line keeps its ending, "$" may stand before a CR. That CR would come between it
        # and other places that follow: those are left out then, which only finds more.
        self._places = {"$": "(?:\\r?$)"}
        if has_place_after_end(node):
            self._places.update({"^": "(?:)", "b": "(?:)", "B": "(?:)"})
        run, self.folded, self.plain = longest_run(node)
        self.required = run.encode("utf-8")
        self.is_tame = open_repeats(node) < 2
        # A scan that looks for nothing finds every line, one character at a time.
        self.plain = self.plain and bool(run) and not self.folded

    @property
    def rg(self):
        """Return the pattern for ripgrep."""
        return emit(self._node, RG, self._places)

    @property
    def ere(self):
        """Return the pattern for `LC_ALL=C grep -E`, or None where that can't say it exactly.

        It is exact but for a CR at the end of a last line that has no LF.
        """
        try:
            return emit(self._node, ERE)
        except CannotSay:
            return None

    @property
    def line(self):
        """Return the pattern for `re`, for one line as `str`."""
        return emit(self._node, TEXT)

    def search(self, line):
        """Return (start, end) of the first match in characters, or None.

        Args:
            line: The bytes of one line without its ending.
        """
        if self.plain:
            at = line.find(self.required)
            if at < 0:
                return None
            start = len(decode(line[:at]))
            return start, start + len(decode(self.required))
        if is_ascii(line):
            match = self._get("line", ASCII).search(line)
        else:
            match = self._get("line", TEXT).search(decode(line))
        return match and match.span()

    def search_piece(self, piece):
        """Return (start, end) of a match inside a part of a line, so never at its first character.

        Args:
            piece: Bytes from the middle of a line, with at least one character before what counts.
        """
        match = self._get("line", TEXT).search(decode(piece), 1)
        return match and match.span()

    def scanner(self, ascii_only):
        """Return a compiled pattern that finds in many lines at least every line that matches.

        Args:
            ascii_only: True for one that takes ASCII bytes, False for one for `decode`d text.
        """
        return self._get("scan", ASCII if ascii_only else TEXT)

    def _get(self, use, target):
        key = use, target
        if key not in self._compiled:
            if use == "scan":
                text = emit(self._node, target, self._places)
                flags = re.MULTILINE
            else:
                text = emit(self._node, target)
                flags = 0
            text = text.encode("ascii") if target is ASCII else text
            self._compiled[key] = re.compile(text, flags)
        return self._compiled[key]


def decode(data):
    """Return bytes as text in which each byte that is not UTF-8 is a lone surrogate."""
    return data.decode("utf-8", "surrogateescape")


def _is_ascii_before_37(data):
    try:
        data.decode("ascii")
        return True
    except UnicodeDecodeError:
        return False


is_ascii = getattr(bytes, "isascii", _is_ascii_before_37)
