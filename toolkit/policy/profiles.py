"""The policies that ship."""

from __future__ import annotations

from dataclasses import replace

from toolkit.policy.rules import Policy, Rule

__all__ = ["PROFILES", "profile"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: Programs that only look, whatever their options (`sort -o` and `find -delete` count as writes),
#: and what a script of them is made of.
_LOOKING = (
    *_words("""
    : basename break cat cd cksum cmp comm command continue cut date declare df diff dirname du echo
    egrep exit export expr false fgrep find fold getopts grep groups head id join jq let local ls
    lsblk md5sum nl nproc od paste pgrep printf ps pushd pwd read readlink readonly realpath return
    rev rg set sha1sum sha256sum sha512sum shift sleep sort stat strings tac tail test tr tree true
    type typeset uname uniq unset uptime wait wc whereis which whoami xargs
    """),
    *(f"git {name}" for name in ("blame", "diff", "grep", "log", "ls-files", "rev-parse")),
    *(f"git {name}" for name in ("shortlog", "show", "status")),
)
_NETWORK = (
    *_words("""
    aria2c curl ftp lftp nc nc.* ncat netcat nmap rsync scp sftp smbclient socat ssh sshfs sshpass
    telnet tftp wget
    """),
    *(f"git {name}" for name in ("clone", "fetch", "ls-remote", "pull", "push", "send-email")),
    "git remote update",
    "openssl s_client",
    "git submodule update",
)
_SYSTEM = _words("""
    apt apt-get chattr chroot crontab dnf doas docker groupadd halt init insmod iptables kexec
    killall kubectl losetup modprobe mount nft nsenter pkexec pkill podman poweroff reboot rmmod
    runuser service setcap shutdown su sudo swapoff swapon sysctl systemctl systemd-run telinit
    umount useradd userdel usermod visudo yum
""")
_LOSES_WORK = (
    "git branch -D",
    "git checkout -f",
    "git clean",
    "git filter-branch",
    "git gc --prune",
    "git reflog expire",
    "git reset --hard",
    "git stash clear",
    "git stash drop",
)
_DESTROYERS = (
    *("fdisk", "mkfs", "mkfs.*", "mkswap", "parted", "sgdisk", "wipefs"),
    *("kill -9 -1", "kill -KILL -1", "kill -TERM -1", "kill -1 -1", "kill -1", "kill -- -1"),
)
_NULLS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/fd/*")
_SYSTEM_FOLDERS = "/{bin,boot,dev,etc,lib,lib32,lib64,opt,proc,root,sbin,srv,sys,usr,var}"
#: `~/[*]` is the text "~/*", as in `rm -rf ~/*`; a file in the home folder is none of it.
_VITAL = (
    *("/", "/[*]", "/.[*]", "~", "~/[*]", "~/.[*]", "/home", "/home/[*]"),
    *(_SYSTEM_FOLDERS, f"{_SYSTEM_FOLDERS}/[*]"),
)
_DISKS = "/dev/{sd,hd,vd,xvd,nvme,mmcblk,loop,dm-,mapper,disk,md}*"

_READ_TOOLS = Rule(action="allow", tools=("read", "ls", "grep", "find"))
_LOOK = Rule(action="allow", tools=("bash",), commands=_LOOKING)
_READ_INPUT = Rule(action="allow", tools=("bash",), access=("read",))
_WRITE_NULL = Rule(action="allow", tools=("bash",), access=("write",), paths=_NULLS)


def _disaster(rule: Rule) -> Rule:
    return replace(
        rule,
        reason="this would take a whole system, disk or home folder with it",
        instead="the same for what is meant, named beneath the working folder",
    )


_DISASTERS = (
    _disaster(Rule(action="deny", access=("delete",), paths=_VITAL)),
    _disaster(Rule(action="deny", access=("write",), tree=True, paths=_VITAL)),
    _disaster(Rule(action="deny", access=("write",), paths=(_DISKS, f"{_DISKS}/**"))),
    Rule(
        action="deny",
        commands=_DESTROYERS,
        reason="this destroys more than a task can need",
        instead="nothing like it; ask a person",
    ),
)

_READ_ONLY = Policy(
    name="profile read-only",
    description=(
        "Looks and changes nothing: read, grep, find and ls, and in bash a list of programs that "
        "only look. What a command may do is judged by its words; a program that was replaced, or "
        "that a repository's configuration has git run, is not seen. It is no sandbox."
    ),
    rules=(
        _READ_TOOLS,
        _WRITE_NULL,
        Rule(
            action="deny",
            access=("write",),
            reason="nothing may be changed",
            instead="read, grep, find, ls, and commands that only look (cat, git status, ...)",
        ),
        Rule(
            action="deny",
            unknown=True,
            reason="nothing may be changed, and what this does cannot be decided",
            instead="a plain command of programs that only look (cat, git status, ...)",
        ),
        _READ_INPUT,
        _LOOK,
    ),
    default="deny",
)

_WORKSPACE = Policy(
    name="profile workspace",
    description=(
        "Works beneath the working folder: files there may be written and deleted, commands may "
        "run, but not well-known network programs, those that change the system, and what cannot "
        "be decided. This is advice, not a wall: a program that is allowed (make, pytest, a "
        "script) may do anything that its user may."
    ),
    rules=(
        _READ_TOOLS,
        *_DISASTERS,
        Rule(
            action="deny",
            commands=_NETWORK,
            reason="programs of the network are not for this task",
            instead="work with what is on the target",
        ),
        Rule(
            action="deny",
            commands=_SYSTEM,
            reason="this changes the system, or acts as another user",
            instead="commands that work beneath the working folder",
        ),
        Rule(
            action="ask",
            access=("delete",),
            tree=True,
            paths=(".",),
            reason="all of the working folder would be gone",
            instead="removing what is named in it",
        ),
        Rule(
            action="ask",
            commands=_LOSES_WORK,
            reason="work that is not committed, or history, would be lost",
            instead="git status, git stash, git commit; removing named files with rm",
        ),
        Rule(
            action="deny",
            unknown=True,
            reason="what this does cannot be decided before it runs",
            instead="the same written plainly: programs and paths by name, none in variables or "
            "pipes; code in a file that is written first",
        ),
        _WRITE_NULL,
        Rule(action="allow", access=("write",), paths=("./**",)),
        Rule(
            action="deny",
            access=("write",),
            reason="it is not beneath the working folder",
            instead="paths beneath the working folder",
        ),
        Rule(action="allow", tools=("bash",)),
    ),
    default="deny",
)

_CAREFUL = Policy(
    name="profile careful",
    description=(
        "Asks before anything is changed: reading is free, in bash also a list of programs that "
        "only look; writes, other commands and what cannot be decided are asked about; what would "
        "take a whole system with it is denied. Where nobody can be asked, asking means denying."
    ),
    rules=(_READ_TOOLS, *_DISASTERS, _WRITE_NULL, _READ_INPUT, _LOOK),
    default="ask",
)

_TRUSTED = Policy(
    name="profile trusted",
    description=(
        "Allows everything but a few commands that nobody means (rm -rf /, mkfs), where they are "
        "written plainly. What cannot be decided is allowed. Good where the target may be lost."
    ),
    rules=_DISASTERS,
    default="allow",
)

#: Name to policy; each says in its description what it is good for.
PROFILES: dict[str, Policy] = {
    "read-only": _READ_ONLY,
    "workspace": _WORKSPACE,
    "careful": _CAREFUL,
    "trusted": _TRUSTED,
}


def profile(name: str) -> Policy:
    """Return a policy that ships.

    Raises:
        ValueError: There is none of that name.
    """
    if name not in PROFILES:
        raise ValueError(f"{name!r} is no profile; there are {', '.join(PROFILES)}")
    return PROFILES[name]
