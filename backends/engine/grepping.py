"""Find lines by pattern."""

import itertools

from backends.engine import dialect, rg, scan
from backends.engine.glob import compile_glob
from backends.engine.ignore import is_plain
from backends.engine.pace import Clock, in_parts
from backends.engine.walk import Unreadable, runs

#: What is over these would not fit beside its match in one part.
MAX_CONTEXT = 200
MAX_LINE_CHARS = 10000
_MAX_SIDE_CHARS = 90000
#: ripgrep 13 obeys these whatever it is told.
_UNASKED_RULES = b".rgignore"
#: What we search ourselves while ripgrep starts: it takes as long.
_OWN_FILES = 64
_OWN_BYTES = 256 << 10
#: ripgrep gets few files by name first, so that a common pattern is answered at once, then more.
_FIRST_BATCH, _LARGEST_BATCH = 500, 8192
_BATCH_BYTES = 512 << 10


def grep(tree, query, emit, cancelled=None, file=None, program=None):
    """Find matching lines below a tree; return the summary (see GrepResult for its keys).

    Args:
        tree: See walk.py.
        query: The attributes of GrepQuery by name, but for `path`, with its defaults.
        emit: Called with parts: {"matches": [[path, line, text, cut]]} and {"done", "found"} now
            and then, in the end {"final": [[path, line, text, cut, before, after]]} in order.
        cancelled: Function that returns true when nobody wants the result any more.
        file: Name (bytes) of the one file of the tree to search, whatever the rules say.
        program: Path of ripgrep, for a tree that has `path` and `size`; None for our own means.

    Raises:
        Fault: "invalid_pattern", "search_timeout" or "cancelled". A single match against one line
            can't be interrupted from inside: whoever runs patterns of strangers does so in a
            process that can be killed.
        OSError: The root cannot be read.
    """
    return _Grep(tree, query, emit, cancelled, file).run(program)


class _Grep:
    def __init__(self, tree, query, emit, cancelled, file):
        self._tree = tree
        self._file = file
        self._emit = emit
        self._clock = Clock(query.get("timeout_s", 30.0), cancelled)
        literal, ignore_case = query.get("literal", False), query.get("ignore_case", False)
        regex = dialect.parse(query["pattern"], literal, ignore_case)
        glob = query.get("glob")
        self._glob = None if glob is None else compile_glob(glob)
        self._limit = query.get("limit", 100)
        self._context = min(query.get("context", 0), MAX_CONTEXT)
        max_chars = min(query.get("max_line_chars", 500), MAX_LINE_CHARS)
        self._wanted = scan.Wanted(regex, max_chars, self._clock.check)
        self._unreadable = Unreadable()
        #: (path, Line) in order; one more than is wanted tells that there is more.
        self._found = []
        self._told = 0
        self._searched = 0
        self._binary = 0
        #: True while ripgrep would leave out the same files as we do.
        self._is_plain = True
        self._engine = "python"

    def run(self, program):
        if program is None:
            self._look_at(self._files())
        else:
            self._run_ripgrep(program)
        more = self._is_full()
        del self._found[self._limit :]
        self._tell_matches()
        for part in in_parts(self._with_context()):
            self._emit({"final": part})
        return {
            "more": more,
            "files_searched": None if more else self._searched,
            "binary_skipped": self._binary,
            "unreadable": self._unreadable.paths,
            "unreadable_total": self._unreadable.total,
            "engine": self._engine,
        }

    def _files(self):
        """Yield the paths of files to look at, in order."""
        if self._file is not None:
            if self._glob is None or self._glob.match(self._file, False):
                yield self._file
            return
        may_hold = self._glob.may_hold if self._glob and self._glob.anchored else None
        entries = runs(
            self._tree, self._unreadable, may_hold, self._note_left_out, self._note_rules
        )
        for prefix, keys, kinds in entries:
            self._clock.check()
            if _UNASKED_RULES in keys:
                self._is_plain = False
            paths = keys[:-1] if keys[-1].endswith(b"/") else keys
            if kinds:
                paths = [name for name in paths if name not in kinds]
            if self._glob is None:
                paths = [prefix + name for name in paths]
            elif paths:
                paths = self._glob.matching(prefix, paths)
            for path in paths:
                yield path

    def _note_rules(self, content):
        self._is_plain = self._is_plain and content is not None and is_plain(content)

    def _note_left_out(self, path):
        # In a repository within the tree ripgrep forgets the rules from outside of it.
        if path.endswith((b"/.git", b"/.git/", _UNASKED_RULES)):
            self._is_plain = False

    def _is_full(self):
        return len(self._found) > self._limit

    def _room(self):
        return self._limit + 1 - len(self._found)

    def _look_at(self, paths):
        """Search files by our own means."""
        for path in paths:
            found = self._scan(path)
            if found is not None:
                lines, binary = found
                self._count(1, binary)
                self._take(path, lines)
                if self._is_full():
                    return

    def _scan(self, path):
        """Return (lines, 1 if it has matches but holds NUL), or None when it can't be read."""
        try:
            lines, binary = scan.scan_file(self._tree.read(path), self._wanted, self._room())
        except OSError as error:
            self._unreadable.add(path, error)
            return None
        return ([], int(bool(lines))) if binary else (lines, 0)

    def _count(self, searched, binary):
        self._searched += searched - binary
        self._binary += binary

    def _take(self, path, lines):
        self._found.extend((path, line) for line in lines[: self._room()])
        if self._clock.news():
            self._tell_matches()
            self._emit({"done": self._searched, "found": min(len(self._found), self._limit)})

    def _tell_matches(self):
        news = self._found[self._told : self._limit]
        self._told += len(news)
        for part in in_parts([path, line.number, line.text, line.cut] for path, line in news):
            self._emit({"matches": part})

    def _with_context(self):
        """Yield what goes into the final parts."""
        for path, group in itertools.groupby(self._found, lambda found: found[0]):
            lines = [line for _, line in group]
            context = self._context_of(path, [line.number for line in lines])
            for line in lines:
                before, after = context.get(line.number, ([], []))
                before, after = _nearest(before[::-1])[::-1], _nearest(after)
                yield [path, line.number, line.text, line.cut, before, after]

    def _context_of(self, path, numbers):
        if not self._context:
            return {}
        try:
            chunks = self._tree.read(path)
            return scan.context_of(chunks, self._wanted, numbers, self._context)
        except OSError:
            return {}  # it is gone since: its matches are still what was found

    # With ripgrep ---------------------------------------------------------------------------

    def _run_ripgrep(self, program):
        """Search by ripgrep, and by our own means where that is quicker or it does not work."""
        ripgrep = rg.Ripgrep(program, self._tree.path, self._wanted, self._limit + 1, self._scan)
        files = self._files()
        if self._file is None and self._glob is None and not self._tree.above():
            files = self._search_tree(ripgrep, files)
        self._search_batches(ripgrep, files)
        if not ripgrep.works:
            self._engine = "python"

    def _search_tree(self, ripgrep, files):
        """Let ripgrep walk while we do; return the files that are still to be looked at.

        Our walk reads the rules, to see whether ripgrep takes them as we do, and tells which files
        there are. We search the first ones, which for a common pattern is all there is to do.
        """
        process = ripgrep.start_on_tree()
        if process is None:
            return files
        left, after = [], b""
        try:
            for path in files:
                if not left and self._is_own(path):
                    after = path
                    self._look_at([path])
                    if self._is_full():
                        return ()
                else:
                    left.append(path)
                if not self._is_plain:
                    return itertools.chain(left, files)
            # A small tree is through before ripgrep has begun.
            if not left or self._take_from(ripgrep, process, left, after):
                return ()
            return left
        finally:
            rg.stop(process)

    def _is_own(self, path):
        """Return True for one of the first files, if it is small and the pattern takes no time."""
        if self._searched >= _OWN_FILES or not self._wanted.regex.is_tame:
            return False
        size = self._tree.size(path)
        return size is not None and size < _OWN_BYTES

    def _search_batches(self, ripgrep, files):
        """Hand files to ripgrep by name, walking on while it works."""
        running = []
        try:
            for batch in _batches(files):
                running.append((batch, ripgrep.start_on(batch)))
                if len(running) > 1:
                    self._finish(ripgrep, *running.pop(0))
                if self._is_full():
                    return
            while running and not self._is_full():
                self._finish(ripgrep, *running.pop(0))
        finally:
            for _, process in running:
                if process:
                    rg.stop(process)

    def _finish(self, ripgrep, batch, process):
        if process is None or not self._take_from(ripgrep, process, batch):
            self._look_at(batch)

    def _take_from(self, ripgrep, process, paths, after=None):
        """Take what a process has found in the files; return False if it did not do its work."""
        files, binary, status = ripgrep.collect(process, self._room(), after)
        if status is None:
            return False
        self._engine = "rg"
        unread = self._note_unreadable(paths) if status == "partly" else 0
        self._count(len(paths) - unread, binary)
        for path, lines in files:
            self._take(path, lines)
        return True

    def _note_unreadable(self, batch):
        """Note the files that can't be read, and return how many there are."""
        count = 0
        for path in batch:
            try:
                for _ in self._tree.read(path):
                    break
            except OSError as error:
                count += 1
                self._unreadable.add(path, error)
        return count


def _batches(paths):
    """Yield the paths in lists that can be arguments, a short one first."""
    batch, size, most = [], 0, _FIRST_BATCH
    for path in paths:
        batch.append(path)
        size += len(path) + 9  # an argument takes more than its text
        if len(batch) == most or size > _BATCH_BYTES:
            yield batch
            batch, size, most = [], 0, _LARGEST_BATCH
    if batch:
        yield batch


def _nearest(lines):
    """Return the first of the [number, text] lines that are not too much for one part."""
    size = 0
    for count, (_, text) in enumerate(lines):
        size += len(text)
        if size > _MAX_SIDE_CHARS:
            return lines[:count]
    return lines
