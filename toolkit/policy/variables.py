"""Variables that change which program a name means, or what a program runs besides."""

from __future__ import annotations

__all__ = ["is_risky"]

_RISKY = """
    PATH HOME PWD OLDPWD CDPATH BASH_ENV ENV SHELL SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND PAGER
    MANPAGER EDITOR VISUAL BROWSER LESSOPEN LESSCLOSE PYTHONSTARTUP PYTHONHOME PERL5OPT PERL5LIB
    RUBYOPT NODE_OPTIONS JAVA_TOOL_OPTIONS TAR_OPTIONS RSYNC_RSH GIT_SSH GIT_SSH_COMMAND
    GIT_EXTERNAL_DIFF GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PROXY_COMMAND GIT_EXEC_PATH GIT_DIR
    GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS
"""
_RISKY_NAMES = frozenset(_RISKY.split())


def is_risky(name: str) -> bool:
    """Whether a variable changes which program runs, or what else it runs."""
    return name in _RISKY_NAMES or name.startswith(("LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG"))
