"""How a pattern of the dialect is read, and what is said about one that is not of it."""

import re

from backends.engine import characters
from backends.engine.dialect_nodes import Chars, Choice, Mark, Repeat, Sequence
from backends.engine.faults import Fault

MAX_REPEAT = 1000
MAX_NESTED = 100

NO_LINE_FEED = "a line never holds a line feed; search for one line at a time"
NO_NUL = "a file with NUL bytes is not searched, so a NUL cannot be found"
_NEVER_IN_TEXT = (0, 10)


def read(pattern, ignore_case):
    """Return the node that `pattern` stands for.

    Raises:
        Fault: "invalid_pattern".
    """
    return _Parser(pattern, ignore_case).parse()


_CONTROLS = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_HEX = {"x": 2, "u": 4, "U": 8}
_REFUSED_ESCAPES = {
    "n": NO_LINE_FEED,
    "A": "\\A is not supported; ^ is the start of the line",
    "z": "\\z is not supported; $ is the end of the line",
    "Z": "\\Z is not supported; $ is the end of the line",
    "<": "\\< is not supported; \\b is a word's edge",
    ">": "\\> is not supported; \\b is a word's edge",
    "p": "\\p{...} is not supported; write the characters as a class such as [a-z]",
    "P": "\\P{...} is not supported; write the characters as a class such as [^a-z]",
    "Q": "\\Q...\\E is not supported; search for literal text instead",
}
_REFUSED_GROUPS = (
    ("(?=", "look-ahead (?= is not supported; search for the whole text instead"),
    ("(?!", "negative look-ahead (?! is not supported; search for less and filter the lines"),
    ("(?<=", "look-behind (?<= is not supported; search for the whole text instead"),
    ("(?<!", "negative look-behind (?<! is not supported; search for less and filter the lines"),
    ("(?>", "atomic groups (?> are not supported; use (?:...)"),
    ("(?#", "comments (?# are not supported; leave it out"),
    ("(?P=", "backreferences (?P= are not supported; write the text twice"),
    ("(?P>", "recursion (?P> is not supported"),
    ("(?(", "conditions (?( are not supported; use alternatives (a|b)"),
    ("(?<", "named groups are written (?P<name>...)"),
    ("(?'", "named groups are written (?P<name>...)"),
    ("(?|", "branch reset (?| is not supported; use (?:...)"),
    ("(?R", "recursion (?R) is not supported"),
)
_NAMED_GROUP = re.compile(r"\(\?P<([A-Za-z_][A-Za-z0-9_]*)>")
_QUANTIFIER = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_SET_OPERATIONS = ("&&", "--", "~~", "||")


class _Parser:
    def __init__(self, pattern, ignore_case):
        self.pattern = pattern
        self.at = 0
        self.ignore_case = ignore_case
        self.depth = 0
        self.group_names = set()

    def parse(self):
        if self.pattern.startswith("(?i)"):
            self.ignore_case = True
            self.at = 4
        node = self.choice()
        if self.at < len(self.pattern):
            self.fail("this ) closes no group; write \\) for the character")
        return node

    def fail(self, reason, at=None):
        raise Fault("invalid_pattern", self.pattern, reason, self.at if at is None else at)

    def peek(self, length=1):
        return self.pattern[self.at : self.at + length]

    def choice(self):
        branches = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else Choice(branches)

    def sequence(self):
        items = []
        while self.at < len(self.pattern) and self.peek() not in "|)":
            start = self.at
            items.append(self.quantified(self.atom(), start))
        return items[0] if len(items) == 1 else Sequence(items)

    def atom(self):
        char = self.peek()
        if char == "(":
            return self.group()
        if char == "[":
            return self.char_class()
        if char == "\\":
            return self.escape()
        if char in "*+?" or (char == "{" and self.quantifier()):
            reason = "there is nothing to repeat before %s; write \\%s for the character"
            self.fail(reason % (char, char))
        self.at += 1
        if char == ".":
            return Chars([], negated=True)
        if char in "^$":
            return Mark(char)
        return Chars.literal(char, self.ignore_case)

    def quantifier(self):
        """Return (least, most, length) of a quantifier that begins here, or None."""
        simple = {"*": (0, None, 1), "+": (1, None, 1), "?": (0, 1, 1)}.get(self.peek())
        if simple:
            return simple
        match = _QUANTIFIER.match(self.pattern, self.at)
        if not match:
            if re.compile(r"\{,[0-9]+\}").match(self.pattern, self.at):
                self.fail("a quantifier needs its least number; write {0,n}")
            return None
        least, comma, most = match.groups()
        if max(len(least), len(most or "")) > 9 or max(int(least), int(most or 0)) > MAX_REPEAT:
            self.fail("a repetition of more than %d is not supported" % MAX_REPEAT)
        most = int(most) if most else None if comma else int(least)
        if most is not None and most < int(least):
            self.fail("a repetition's least number is above its most")
        return int(least), most, match.end() - match.start()

    def quantified(self, item, start):
        found = self.quantifier()
        if not found:
            return item
        if isinstance(item, Mark):
            self.fail("%s cannot be repeated" % self.pattern[start : self.at])
        least, most, length = found
        self.at += length
        lazy = self.peek() == "?"
        if lazy:
            self.at += 1
        elif self.peek() == "+":
            self.fail("possessive quantifiers are not supported; leave out the second +")
        if self.at < len(self.pattern) and self.quantifier():
            reason = (
                "a quantifier after a quantifier is not supported; group the first with (?:...)"
            )
            self.fail(reason)
        return Repeat(item, least, most, lazy)

    def group(self):
        start = self.at
        outer = self.ignore_case
        self.depth += 1
        if self.depth > MAX_NESTED:
            self.fail("groups are nested deeper than %d" % MAX_NESTED)
        self.group_head()
        node = self.choice()
        if self.peek() != ")":
            self.fail("this group is not closed; write \\( for the character", start)
        self.at += 1
        self.depth -= 1
        self.ignore_case = outer
        # A sequence of its own keeps a lone place such as (^) apart from a bare one.
        return Sequence([node]) if isinstance(node, Mark) else node

    def group_head(self):
        named = _NAMED_GROUP.match(self.pattern, self.at)
        if named:
            if named.group(1) in self.group_names:
                self.fail("the group name %r is used twice" % named.group(1))
            self.group_names.add(named.group(1))
            self.at = named.end()
            return
        for head, ignore_case in (("(?:", None), ("(?i:", True), ("(?-i:", False)):
            if self.pattern.startswith(head, self.at):
                self.at += len(head)
                self.ignore_case = self.ignore_case if ignore_case is None else ignore_case
                return
        for head, reason in _REFUSED_GROUPS:
            if self.pattern.startswith(head, self.at):
                self.fail(reason)
        if self.peek(2) == "(?":
            self.fail("the only flag is i: (?i) at the start of the pattern, or (?i:...)")
        if self.peek(2) == "(*":
            self.fail("verbs (* are not supported")
        self.at += 1

    def escape(self):
        name = self.pattern[self.at + 1 : self.at + 2]
        if name in ("b", "B"):
            if self.pattern.startswith(("{start", "{end"), self.at + 2):
                self.fail("\\b{...} is not supported; \\b is a word's edge")
            self.at += 2
            return Mark(name)
        if name and name in "dwsDWS":
            self.at += 2
            return Chars([], name)
        return Chars.literal(self.escaped_char(), self.ignore_case)

    def escaped_char(self, in_class=False):
        """Return the character that the escape here stands for."""
        name = self.pattern[self.at + 1 : self.at + 2]
        if in_class and name == "n":
            self.at += 2
            return "\n"
        if not name:
            self.fail("a \\ at the end escapes nothing; write \\\\ for the character")
        if name in _REFUSED_ESCAPES:
            self.fail(_REFUSED_ESCAPES[name])
        if name in _HEX:
            return self.hex_char(name, in_class)
        if name in "123456789":
            self.fail("backreferences such as \\%s are not supported; write the text twice" % name)
        if name == "0":
            self.fail("octal escapes are not supported; write \\xHH")
        if name in _CONTROLS:
            self.at += 2
            return _CONTROLS[name]
        if name.isalnum() or name >= "\x80":
            self.fail("\\%s is not supported" % name)
        self.at += 2
        return name

    def hex_char(self, name, in_class):
        start = self.at
        braced = re.compile(r"\{([0-9A-Fa-f]{1,8})\}").match(self.pattern, self.at + 2)
        digits = self.pattern[self.at + 2 : self.at + 2 + _HEX[name]]
        if braced:
            digits = braced.group(1)
            self.at = braced.end()
        elif re.match(r"[0-9A-Fa-f]{%d}\Z" % _HEX[name], digits):
            self.at += 2 + len(digits)
        else:
            self.fail("\\%s needs %d hexadecimal digits, or some in braces" % (name, _HEX[name]))
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self.fail("this is not a character of Unicode", start)
        if code == 10 and not in_class:
            self.fail(NO_LINE_FEED, start)
        if code == 0 and not in_class:
            self.fail(NO_NUL, start)
        return chr(code)

    def char_class(self):
        start = self.at
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        ranges, names = [], ""
        first = self.at
        while self.at == first or self.peek() != "]":
            if self.at >= len(self.pattern):
                self.fail("this class is not closed; write \\[ for the character", start)
            member = self.member(first)
            if isinstance(member, Chars):
                names += member.names
            else:
                ranges.append(member)
        self.at += 1
        ranges = characters.fold(ranges) if self.ignore_case else characters.normal(ranges)
        possible = characters.without(ranges, _NEVER_IN_TEXT)
        names = "".join(sorted(set(names)))
        if not possible and not names and not negated:
            self.fail("no line of text holds any character of this class", start)
        return Chars(possible, names, negated)

    def member(self, first):
        """Return one member of a class: (first, last), or Chars of a named set."""
        start = self.at
        low = self.member_char(first)
        if self.peek() != "-" or self.peek(2) in ("-]", "-"):
            return low if isinstance(low, Chars) else (ord(low), ord(low))
        if self.peek(2) == "--":
            self.fail("set operations such as -- are not supported; write \\- for the character")
        self.at += 1
        high = self.member_char(None)
        if isinstance(low, Chars) or isinstance(high, Chars):
            self.fail("a range needs a character at each end; write \\- for the character", start)
        if high < low:
            self.fail("the range %s is backwards" % self.pattern[start : self.at], start)
        if self.peek() == "-" and self.peek(2) != "-]":
            self.fail("a - after a range is ambiguous; write \\- for the character")
        return ord(low), ord(high)

    def member_char(self, first):
        char = self.peek()
        if self.peek(2) in _SET_OPERATIONS:
            self.fail("set operations such as %s are not supported" % self.peek(2))
        if self.peek(2) in ("[:", "[.", "[="):
            self.fail("classes such as [:alpha:] are not supported; write [a-zA-Z]")
        if char == "[":
            self.fail("a [ inside a class is written \\[")
        if char == "-" and self.at != first and self.peek(2) != "-]":
            self.fail("a - between members is ambiguous; write \\- for the character")
        if char == "\\":
            name = self.pattern[self.at + 1 : self.at + 2]
            if name and name in "dwsDWS":
                self.at += 2
                return Chars([], name)
            if name in ("b", "B"):
                self.fail("\\%s has no meaning inside a class" % name)
            return self.escaped_char(in_class=True)
        self.at += 1
        return char
