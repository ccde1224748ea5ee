"""Which shell runs commands, how a command's text reaches it, and in what environment."""

import os

#: Where the shell finds the text; one digit, since dash parses no more.
COMMAND_FD = 9

#: What a command gets unless it is configured otherwise: no pager, no prompt, no terminal tricks.
QUIET = {
    b"TERM": b"dumb",
    b"PAGER": b"cat",
    b"MANPAGER": b"cat",
    b"GIT_PAGER": b"cat",
    b"SYSTEMD_PAGER": b"cat",
    b"GIT_TERMINAL_PROMPT": b"0",
    b"DEBIAN_FRONTEND": b"noninteractive",
    b"PIP_NO_INPUT": b"1",
}

# The text is never an argument: one argument ends at 128 KiB, and arguments stand in process
# lists. bash reads it into a variable and evaluates it, which differs from `bash -c TEXT` in
# nothing but the words "eval:" for "-c:" in a syntax error: not in $0, line numbers, exit codes
# or what children inherit. Sourcing it is faster for megabytes (0.15 s against 0.6 for 10 MB, the
# same for small ones) but puts the descriptor's name into every message and lets `return` end it.
# REPLY, since without a name `read` strips nothing; it is not exported. --norc, since Debian's
# bash reads ~/.bashrc whenever it finds SSH_CLIENT in its environment.
_BASH = b'unset -v REPLY; read -r -d "" <&9; exec 9<&-; eval -- "$REPLY"'
# Other shells cannot read up to the end without a fork (1.8 ms), so they source it. The text's
# own first line closes the descriptor; the shell has opened another one for itself.
_SH = b". /proc/self/fd/9"
_SH_OFF_LINUX = b". /dev/fd/9"
_SH_PREFIX = b"exec 9<&-; "

_USUAL_PATH = b"/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


class Shell:
    """A shell on this machine.

    Attributes:
        path: The program.
        name: Its base name, as "bash" or "sh".
    """

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path).decode("utf-8", "replace")

    def argv(self):
        """Return the arguments that make it run the text on COMMAND_FD."""
        name = os.path.basename(self.path)
        if self.name == "bash":
            return [name, b"--norc", b"-c", _BASH]
        source = _SH if os.path.isdir("/proc/self/fd") else _SH_OFF_LINUX
        return [name, b"-c", source]

    def text(self, command):
        """Return what to put on COMMAND_FD so that `command` is run."""
        return command if self.name == "bash" else _SH_PREFIX + command


def find_shell(path=None):
    """Return the Shell at `path`, else bash, else sh; None where there is none."""
    if path is not None:
        return Shell(path)
    for name in (b"bash", b"sh"):
        found = which(name)
        if found is not None:
            return Shell(found)
    return None


def which(name):
    """Return the path of a program on this process's PATH or in the usual folders, or None."""
    for folder in os.environb.get(b"PATH", b"").split(b":") + _USUAL_PATH.split(b":"):
        path = os.path.join(folder, name)
        if folder.startswith(b"/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def environment(configured, cwd, mark):
    """Return what is set on top of the engine's own environment and QUIET, as pairs.

    Args:
        configured: Pairs or a map of names and values, bytes or text; they win.
        cwd: The working folder as it was asked for, so that the shell keeps a symlinked name.
        mark: (name, value) by which processes of this command can be told.
    """
    pairs = configured.items() if isinstance(configured, dict) else configured
    merged = {b"PWD": cwd}
    merged.update((_bytes(name), _bytes(value)) for name, value in pairs)
    merged.update([mark])
    return [[name, value] for name, value in merged.items()]


def descriptor_with(data):
    """Return a descriptor at whose start `data` can be read, and which nothing else can open.

    Raises:
        OSError: There is neither memory nor a writable folder for it.
    """
    fd = _anonymous_file()
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def _anonymous_file():
    memory_file = getattr(os, "memfd_create", None)  # Python 3.8 and later
    if memory_file is not None:
        try:
            return memory_file("remotehands")
        except OSError:
            pass  # an old kernel or a sandbox
    failure = OSError("no folder for temporary files")
    for folder in (os.environ.get("TMPDIR"), "/dev/shm", "/tmp", "/var/tmp", "/run"):
        if not folder:
            continue
        path = os.path.join(folder, "remotehands-%d-%s" % (os.getpid(), os.urandom(8).hex()))
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            failure = error
            continue
        os.unlink(path)
        return fd
    raise failure


def _bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
