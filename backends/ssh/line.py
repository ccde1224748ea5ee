"""A program as one line that any login shell parses: sh, bash, dash, ksh, zsh, fish, csh, tcsh."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

__all__ = ["login_line", "with_login_env", "with_user"]

#: What shells disagree about, even between single quotes.
_ODD = "'\\!\n"

#: Shells that take a line along with `-l`; for any other, sh reads what a login reads.
_LOGIN = (
    'case ${SHELL##*/} in bash|zsh|ksh|fish) exec "$SHELL" -l -c "$1";; '
    '*) exec /bin/sh -l -c "$1";; esac'
)
_DECODE = 'eval "$(printf %b "$1")"'


def login_line(argv: Sequence[str]) -> str:
    """Return a line that replaces the login shell by a program; its stdin is untouched.

    An argument with a character that shells quote differently goes in octal, which a POSIX sh
    turns back: between single quotes all shells leave a backslash alone that a digit follows.
    """
    if not any(odd in argument for argument in argv for odd in _ODD):
        return f"exec {shlex.join(argv)}"
    script = f"exec {shlex.join(argv)}"
    octal = "".join(f"\\0{ord(char):03o}" if char in _ODD else char for char in script)
    return f"exec /bin/sh -c '{_DECODE}' sh '{octal}'"


def with_user(argv: Sequence[str], user: str) -> list[str]:
    """Return a program that runs another one as another user, and never asks for a password."""
    return ["sudo", "-n", "-H", "-u", user, "--", *argv]


def with_login_env(argv: Sequence[str]) -> list[str]:
    """Return a program that runs another one in the environment of the user's login shell."""
    return ["/bin/sh", "-c", _LOGIN, "sh", login_line(argv)]
