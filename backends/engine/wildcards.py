"""How a name fits a pattern with wildcards, in linear time; globs and .gitignore both stand on it.

No regular expression here holds a repetition: between two stars every token is one character, so
the leftmost place where it fits is as good as any, and nothing is ever tried twice.
"""

import re


class _Star:
    """The token for any run of characters within one part of a path."""


class OneOf:
    """The token for one character out of a set, written for `re`."""

    def __init__(self, text):
        self.text = text


STAR = _Star()
ANY_CHARACTER = OneOf(".")

_POSIX = {
    "alnum": [("0", "9"), ("A", "Z"), ("a", "z")],
    "alpha": [("A", "Z"), ("a", "z")],
    "blank": [(" ", " "), ("\t", "\t")],
    "cntrl": [("\0", "\x1f"), ("\x7f", "\x7f")],
    "digit": [("0", "9")],
    "graph": [("!", "~")],
    "lower": [("a", "z")],
    "print": [(" ", "~")],
    "punct": [("!", "/"), (":", "@"), ("[", "`"), ("{", "~")],
    "space": [(" ", " "), ("\t", "\r")],
    "upper": [("A", "Z")],
    "xdigit": [("0", "9"), ("A", "F"), ("a", "f")],
}


class Malformed(Exception):
    """A pattern that has no meaning.

    Args:
        reason: Why.
        position: 0-based character where the fault begins.
    """

    def __init__(self, reason, position):
        super().__init__(reason, position)
        self.reason = reason
        self.position = position


def tokenize(pattern):
    """Cut a pattern into the parts between its slashes, each a list of tokens.

    A token is a character (str) that stands for itself, STAR, or OneOf.

    Raises:
        Malformed: A bracket is not closed, or nothing follows a backslash.
    """
    parts = [[]]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "/":
            parts.append([])
        elif char == "*":
            parts[-1].append(STAR)
        elif char == "?":
            parts[-1].append(ANY_CHARACTER)
        elif char == "[":
            text, at = bracket(pattern, at - 1)
            parts[-1].append(OneOf(text))
        elif char == "\\":
            if at == len(pattern):
                raise Malformed("nothing follows the \\ at the end", at - 1)
            if pattern[at] == "/":
                parts.append([])
            else:
                parts[-1].append(pattern[at])
            at += 1
        else:
            parts[-1].append(char)
    return parts


def bracket(pattern, start):
    """Read the bracket expression at `start`; return (text for `re`, position behind it).

    The rules are git's: "!" or "^" negates, a "]" in first place is itself, a backslash takes the
    next character as it stands, [:name:] is a set of ASCII characters.

    Raises:
        Malformed: It is not closed, or names an unknown set.
    """
    at = start + 1
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    ranges = []
    previous = None
    first = at
    while at == first or pattern[at : at + 1] != "]":
        char = pattern[at : at + 1]
        if char == "[" and pattern[at + 1 : at + 2] == ":":
            end = pattern.find("]", at + 2)
            if end < 0:
                raise Malformed("the [ is not closed", start)
            if pattern[end - 1] == ":" and end - 1 >= at + 2:
                name = pattern[at + 2 : end - 1]
                if name not in _POSIX:
                    raise Malformed("there is no set of characters [:%s:]" % name, at)
                ranges += _POSIX[name]
                at, previous = end + 1, None
                continue
        is_range = (
            char == "-" and previous is not None and pattern[at + 1 : at + 2] not in ("", "]")
        )
        at += is_range
        char, at = _bracket_char(pattern, at, start)
        if is_range:
            ranges.append((previous, char))
            previous = None
        else:
            ranges.append((char, char))
            previous = char
    return _bracket_text(ranges, negated), at + 1


def _bracket_char(pattern, at, start):
    if pattern[at : at + 1] == "\\":
        at += 1
    if at >= len(pattern):
        raise Malformed("the [ is not closed", start)
    return pattern[at], at + 1


def _bracket_text(ranges, negated):
    inside = "".join(
        "%s-%s" % (_code(first), _code(last)) for first, last in ranges if first <= last
    )
    if not inside:
        return "." if negated else "(?!)"
    return "[%s%s]" % ("^" if negated else "", inside)


def _code(char):
    return "\\U%08x" % ord(char)


def is_literal(part):
    """Return True when every token of the part is a character that stands for itself."""
    return all(isinstance(token, str) for token in part)


def is_globstar(part):
    """Return True for a part that is nothing but two stars or more."""
    return len(part) > 1 and all(token is STAR for token in part)


def part_matcher(part, encoding):
    """Return a function that tells whether a name (bytes, without "/") fits the part.

    Args:
        part: A list of tokens.
        encoding: What a character is: "utf-8", or "latin-1" for single bytes.
    """
    runs = _runs(part)
    if all(is_literal(run) for run in runs):
        return _bytes_matcher([_encode(run, encoding) for run in runs])
    matches = _text_matcher(runs)
    return lambda name: matches(name.decode(encoding, "surrogateescape"))


def _runs(part):
    """Return the runs of single characters between the stars, one more than there are stars."""
    runs = [[]]
    for token in part:
        if token is not STAR:
            runs[-1].append(token)
        elif len(runs) < 2 or runs[-1]:
            runs.append([])
    return runs


def _encode(run, encoding):
    return "".join(run).encode(encoding, "surrogateescape")


def _bytes_matcher(runs):
    if len(runs) == 1:
        return runs[0].__eq__
    head, tail = runs[0], runs[-1]
    if len(runs) == 2:
        if not tail:
            return lambda name: name.startswith(head)
        if not head:
            return lambda name: name.endswith(tail)
    shortest = len(head) + len(tail)

    def matches(name):
        if len(name) < shortest or not name.startswith(head) or not name.endswith(tail):
            return False
        at, end = len(head), len(name) - len(tail)
        for run in runs[1:-1]:
            found = name.find(run, at, end)
            if found < 0:
                return False
            at = found + len(run)
        return True

    return matches


def _text_matcher(runs):
    compiled = [re.compile("".join(_token_text(token) for token in run), re.DOTALL) for run in runs]
    if len(runs) == 1:
        fits = compiled[0].fullmatch
        return lambda text: fits(text) is not None
    head, tail, tail_length = compiled[0], compiled[-1], len(runs[-1])

    def matches(text):
        found = head.match(text)
        if not found:
            return False
        at, end = found.end(), len(text) - tail_length
        if end < at or not tail.match(text, end):
            return False
        for run in compiled[1:-1]:
            found = run.search(text, at, end)
            if not found:
                return False
            at = found.end()
        return True

    return matches


def _token_text(token):
    if isinstance(token, str):
        return re.escape(token)
    return token.text


class PathMatcher:
    """Tell whether a whole path fits a pattern.

    A part that is `**` is any number of parts; as the last one, it is at least one.

    Args:
        parts: Lists of tokens.
        encoding: As for `part_matcher`.
    """

    def __init__(self, parts, encoding):
        #: Runs of parts between the globstars; each run has a fixed length.
        self._runs = [[]]
        for part in parts:
            if is_globstar(part):
                self._runs.append([])
            else:
                self._runs[-1].append(part_matcher(part, encoding))
        if len(self._runs) > 1 and not self._runs[-1]:
            self._runs[-1].append(lambda name: True)
        self._shortest = sum(len(run) for run in self._runs)

    def match(self, path):
        """Return True when `path` (bytes, without "/" at its end) fits."""
        names = path.split(b"/")
        if len(self._runs) == 1:
            return len(names) == self._shortest and self._fits(self._runs[0], names, 0)
        if len(names) < self._shortest:
            return False
        head, tail = self._runs[0], self._runs[-1]
        at, end = len(head), len(names) - len(tail)
        if not self._fits(tail, names, end) or not self._fits(head, names, 0):
            return False
        for run in self._runs[1:-1]:
            while at + len(run) <= end and not self._fits(run, names, at):
                at += 1
            at += len(run)
            if at > end:
                return False
        return True

    def may_hold(self, names):
        """Return False when no path below the folder with these parts can fit."""
        head = self._runs[0]
        if len(self._runs) == 1 and len(names) >= len(head):
            return False
        shared = min(len(head), len(names))
        return self._fits(head[:shared], names, 0)

    @staticmethod
    def _fits(run, names, at):
        for match in run:
            if not match(names[at]):
                return False
            at += 1
        return True
