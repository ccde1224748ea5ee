"""What the engine tells about its machine when it says hello."""

import hashlib
import os
import sys


def machine_id():
    """Return text that is equal for engines which see the same filesystem, and for no others.

    The boot and the device of "/" tell containers of one host apart, which may have been made
    from one image and so share /etc/machine-id.
    """
    root = os.stat("/")
    parts = [
        _read("/etc/machine-id"),
        _read("/proc/sys/kernel/random/boot_id") or os.uname().nodename.encode(),
        b"%d:%d" % (root.st_dev, root.st_ino),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def umask():
    """Return the process's creation mask, without changing it where /proc tells."""
    for line in _read("/proc/self/status").splitlines():
        if line.startswith(b"Umask:"):
            return int(line.split()[1], 8)
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def collect(place, shell, capabilities):
    """Return the facts as plain values.

    Args:
        place: The Place that file operations act in.
        shell: Name of the program that runs commands, or None.
        capabilities: Names of what the target has.
    """
    return {
        "home": place.home(),
        "machine_id": machine_id(),
        "platform": sys.platform,
        "shell": shell,
        "capabilities": sorted(capabilities),
        "umask": umask(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "pid": os.getpid(),
    }


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read(65536).strip()
    except OSError:
        return b""
