"""What runs on the target: one `tar` under a small script that says how it went.

It needs POSIX sh and the usual tools, busybox's at the least, and no file of its own. No end of
stdin is needed to go on (not every channel can close one half), but one ends it: then nobody is
there any more.
"""

from __future__ import annotations

__all__ = ["PUT", "TAKE", "argv_of", "escaped"]

#: Marks are "\nWORD LETTER NUMBER\n"; nothing else can foresee the word.
_START = r"""
exec 3<&0 </dev/null
LC_ALL=C; export LC_ALL; unset TAR_OPTIONS
word=$1
d=$(printf '%b_' "$2"); d=${d%_}
mark() { printf '\n%s %s %s\n' "$word" "$1" "$2"; }
read -r n <&3 && [ "$n" = ready ] || exit
command -v tar >/dev/null 2>&1 || { mark N 1; exit; }
"""

# An archive comes in runs, each after its length on a line, up to a run of 0: a tar that reads a
# pipe waits for its end. busybox's head takes more than it is told to, and some dd know no count
# of bytes, so the shell looks first. A second archive has the folders again: the first tar makes
# links that lead elsewhere last, and so touches folders whose time it has set. Then come lines
# with the modes of closed folders, which busybox leaves alone unless it is root.
PUT = (
    _START
    + r"""
take='dd bs=65536 iflag=count_bytes,fullblock count='
works() { [ "$(printf abcdef | { ${take}3 && printf + && cat; } 2>/dev/null)" = abc+def ]; }
works || take='head -c '
works || { mark N 2; exit; }
mark R 0
read -r n <&3 && [ "$n" = go ] || exit
runs() { while read -r n && [ "$n" -gt 0 ]; do ${take}"$n" 2>/dev/null || break; done; }
umask 0
unpack() { runs <&3 | tar -xopf - -C "$d" 2>&1; }
close_up() {
  runs <&3 | while read -r m p; do
    p=$(printf '%b_' "$p"); chmod "$m" "$d/${p%_}" 2>&1 || exit
  done
}
unpack && unpack && close_up
mark X $?
"""
)

# The tar goes out as it is; what it complains about comes behind it, cut to its end. The second
# child sees the end of stdin when nobody listens any more, which docker does not tell the tar.
TAKE = (
    _START
    + r"""
mark R 0
read -r n <&3 && [ "$n" = go ] || exit
exec 4>&1
said=$({
  tar -cf - -C "$d" . 2>&1 >&4 3<&- 4>&- &
  t=$!
  { read -r n <&3; kill "$t"; } >/dev/null 2>&1 4>&- &
  w=$!
  wait "$t"; s=$?
  kill "$w"
  printf '\n%s' "$s"
} 4>&4 | tail -c 4000)
mark T 0
printf %s "$said"
mark X 0
"""
)


def argv_of(script: str, word: str, path: bytes) -> list[str]:
    """Return the program.

    Args:
        script: PUT or TAKE.
        word: What its marks bear; letters and digits.
        path: The folder on the target; any bytes, so they travel as numbers.
    """
    return ["/bin/sh", "-c", script.strip(), "sh", word, escaped(path)]


def escaped(path: bytes) -> str:
    r"""Return a path as `printf %b` reads it."""
    return "".join(f"\\0{byte:03o}" for byte in path)
