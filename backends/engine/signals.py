"""How the engine's own processes take signals, and what a program gets instead."""

import os
import signal


def watch_children():
    """Make a descriptor readable whenever a child ends; return it."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    os.set_blocking(write_fd, False)
    signal.set_wakeup_fd(write_fd)
    return read_fd


def ignore_signals():
    """Outlive a `kill` of all processes by name; handlers, so that a program gets the defaults.

    SIGCHLD is among them for `watch_children`; forks have them all.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, _ignore)


def reset_signals():
    """Give a forked child the signal handling that a program expects."""
    signal.set_wakeup_fd(-1)
    for number in range(1, signal.NSIG):
        try:
            if signal.getsignal(number) not in (signal.SIG_DFL, None):
                signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # KILL, STOP and those that the C library keeps for itself
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _ignore(_number, _frame):
    """Do nothing; the wake-up descriptor tells."""
