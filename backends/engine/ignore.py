"""What .gitignore files say about a path: git's rules, with or without a repository.

The last rule that fits decides, the deepest file first. A folder that is ignored is not entered, so
nothing below it can be included again; that is for the walk to do. Only .gitignore counts: not
.git/info/exclude, nor what a user has configured, so that the answer is the same for everyone.
"""

import re

from backends.engine.wildcards import Malformed, PathMatcher, is_literal, part_matcher, tokenize

#: More than this of one file is not read.
MAX_BYTES = 4 << 20
_SPECIAL = re.compile(r"[*?\[\\]")
#: A part of a rule that ripgrep takes as git does: no braces, escapes, "?", sets beyond ASCII.
_PLAIN_PART = re.compile(
    r"(?!\.{1,2}\Z)(?:[A-Za-z0-9_.+@~$%&,;=:'() #^-]|\*(?!\*)|\[(?:0-9|a-z|A-Z|[A-Za-z0-9])+\])+\Z"
)


class IgnoreRules:
    """The rules that hold in one folder: those of its own file, then those above it.

    Args:
        content: The folder's .gitignore as bytes.
        folder: Path of the folder below the root of the walk, ending with "/"; b"" for the root.
        above: IgnoreRules that hold in the folder above, or None.
        lead: For a folder above the root: the root's path below it, ending with "/".
    """

    def __init__(self, content, folder=b"", above=None, lead=b""):
        self._skip = len(folder)
        self._lead = lead
        self._above = above
        # Most rules name a name or an ending, and most names are decided by looking them up.
        #: Name or ending -> numbers of the rules that name it, first to last.
        self._names = {}
        self._endings = {}
        #: (number, function of path and name), last to first.
        self._others = []
        #: By number: (ignores, folders only).
        self._kinds = []
        for line in _lines(content):
            self._add(line)
        self._others.reverse()

    def ignored(self, path, name, is_directory):
        """Return True when the rules leave out a path whose folders are not left out.

        Args:
            path: Bytes, relative to the root of the walk, without "/" at the end.
            name: Its last part.
            is_directory: True for a folder; False for a symlink, whatever it points to.
        """
        rules = self
        while rules is not None:
            number = rules._decisive(path, name, is_directory)
            if number >= 0:
                return rules._kinds[number][0]
            rules = rules._above
        return False

    def _decisive(self, path, name, is_directory):
        """Return the number of the last rule in this file that fits, or -1."""
        found = -1
        numbers = self._names.get(name)
        if numbers is not None:
            found = self._last(numbers, is_directory)
        if self._endings:
            # Without a dot this looks up the last character, which is no ending.
            numbers = self._endings.get(name[name.rfind(b".") :])
            if numbers is not None:
                found = max(found, self._last(numbers, is_directory))
        if self._others:
            path = self._lead + path[self._skip :]
            for number, fits in self._others:
                if number < found:
                    break
                if (is_directory or not self._kinds[number][1]) and fits(path, name):
                    return number
        return found

    def _last(self, numbers, is_directory):
        for number in reversed(numbers):
            if is_directory or not self._kinds[number][1]:
                return number
        return -1

    def _add(self, line):
        ignores = not line.startswith("!")
        pattern = line if ignores else line[1:]
        folders_only = pattern.endswith("/")
        pattern = pattern[:-1] if folders_only else pattern
        if not pattern:
            return
        number = len(self._kinds)
        try:
            if "/" in pattern:
                self._others.append((number, _path_rule(pattern)))
            else:
                self._add_name(number, pattern)
        except Malformed:
            return  # git lets such a rule fit nothing
        self._kinds.append((ignores, folders_only))

    def _add_name(self, number, pattern):
        (part,) = tokenize(pattern)
        if is_literal(part):
            self._names.setdefault("".join(part).encode("latin-1"), []).append(number)
        elif re.match(r"\*\.[^.*?\[\\]*\Z", pattern):
            self._endings.setdefault(pattern[1:].encode("latin-1"), []).append(number)
        else:
            fits = part_matcher(part, "latin-1")
            self._others.append((number, lambda path, name: fits(name)))


def rules_above(files):
    """Return the IgnoreRules of folders above the root, or None.

    Args:
        files: (lead, content) of each, outermost first.
    """
    rules = None
    for lead, content in files:
        rules = IgnoreRules(content, b"", rules, lead)
    return rules


def is_plain(content):
    """Return True when ripgrep takes every rule of a .gitignore exactly as git does."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if b"\0" in content or content.startswith(b"\xef\xbb\xbf"):
        return False
    for line in _lines(content):
        body = line[line.startswith("!") :]
        body = body[body.startswith("/") : len(body) - body.endswith("/")]
        if not all(part == "**" or _PLAIN_PART.match(part) for part in body.split("/")):
            return False
    return True


def _path_rule(pattern):
    """Return a function of (path, name) for a rule with a slash in it."""
    pattern = pattern[pattern.startswith("/") :]
    special = _SPECIAL.search(pattern)
    start = special.start() if special else len(pattern)
    # git compares what comes before the first wildcard as it stands and takes the rest for a
    # pattern of its own: that is why "a**/b" means more than "a*/b".
    head = pattern[:start].encode("latin-1")
    if not special:
        return lambda path, name: path == head
    matches = PathMatcher(tokenize(pattern[start:]), "latin-1").match
    return lambda path, name: path.startswith(head) and matches(path[len(head) :])


def _lines(content):
    """Yield the rules of a file as text with one character per byte."""
    text = content[:MAX_BYTES].decode("latin-1")
    start = 3 if text.startswith("\xef\xbb\xbf") else 0
    for line in text[start:].split("\n"):
        if line.startswith("#"):
            continue
        line = line[: len(line) - line.endswith("\r")]
        line = _without_trailing_spaces(line.split("\0")[0])
        if line:
            yield line


def _without_trailing_spaces(line):
    if not line.endswith(" "):
        return line
    end = 0
    at = 0
    while at < len(line):
        if line[at] == "\\":
            if at + 1 == len(line):
                return line
            at += 1
            end = at + 1
        elif line[at] != " ":
            end = at + 1
        at += 1
    return line[:end]
