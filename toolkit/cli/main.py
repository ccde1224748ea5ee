"""The command's entry: options, help texts and exit codes; the work is in the modules beside it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from toolkit.cli.completion import complete_keys, complete_targets, complete_tools
from toolkit.cli.targets import TARGETS

if TYPE_CHECKING:
    from toolkit.cli.control import Control
    from toolkit.cli.hosts import Targets
    from toolkit.cli.log import EventLog

__all__ = ["main"]

EXIT_ERROR, EXIT_USAGE, EXIT_UNREACHABLE = 1, 2, 3
#: What a stream says whose reader or whose room is gone.
_LOST = (errno.EPIPE, errno.ENOSPC, errno.EIO)

app = typer.Typer(
    name="toolkit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Run an agent's tool calls (read, write, edit, bash, grep, find, ls) on any machine.",
    epilog="Exit codes: 0 done, 1 the result is an error, 2 usage, 3 target unreachable, "
    "130 interrupted; of several targets, 3 if any was unreachable, else 1 if any result is an "
    "error.",
)

audit_app = typer.Typer(no_args_is_help=True, help="Look after audit logs.")
app.add_typer(audit_app, name="audit")
docker = typer.Typer(no_args_is_help=True, help="Look after containers of our own.")
app.add_typer(docker, name="docker")

On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="TARGET",
        help=f"Where the tools act, local: if it is left out: {'; '.join(TARGETS.values())}. Give "
        "it again for many; or ranges of hosts, 'ssh://web[01-40]' or 'ssh://[a,b,c].lan'; or "
        "@FILE, which has one a line and # before comments; or a name that a configuration file "
        "gives one (see `remotehands.toml` in the pages).",
        show_default=False,
        autocompletion=complete_targets,
    ),
]
Forks = Annotated[
    int, typer.Option(min=1, metavar="N", help="Of many targets, how many at one time.")
]
Cwd = Annotated[
    str | None,
    typer.Option(help="Working folder on the target, for relative paths and commands."),
]
Root = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Confine the file tools to this folder of the target; bash is refused then.",
    ),
]
Unconfined = Annotated[
    bool,
    typer.Option(
        "--unconfined-commands", help="With --root: run commands all the same; it holds none."
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Hold calls back: read-only, workspace, careful, trusted, or a file of rules. Asks on "
        "a terminal; elsewhere asking means denying.",
    ),
]
Audit = Annotated[
    str | None,
    typer.Option(
        "--audit", metavar="FILE", help="Log what the policy decides and what came of it, chained."
    ),
]
Log = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="FILE",
        help='Add every event to FILE, as lines of JSON: {"schema": 1, "time", "target", "event"}.',
    ),
]


def main() -> None:
    """Run the command line; never returns."""
    try:
        app()
    except (OSError, BaseExceptionGroup) as error:
        _tell_lost_output(error)


def _tell_lost_output(error: BaseException) -> None:
    """End in a line if all that is wrong is that output finds no reader or no room; else raise."""
    from toolkit.failures import leaves

    told = list(leaves(error))
    faults = [each for each in told if isinstance(each, OSError) and each.errno in _LOST]
    if len(faults) < len(told):
        raise error
    # What is still in the buffer would fail once more at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not isinstance(faults[0], BrokenPipeError):
        print(f"toolkit: standard output: {faults[0].strerror}", file=sys.stderr)
    sys.exit(EXIT_ERROR)


def _show_version(value: bool) -> None:  # noqa: FBT001 - typer calls it so
    if value:
        from importlib.metadata import version

        typer.echo(f"remotehands {version('remotehands')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: FBT002 - handled by its callback
        bool, typer.Option("--version", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


@app.command(
    epilog="Examples: toolkit call read path=src/main.py limit=20; "
    "toolkit call bash command=uptime --on 'ssh://web[01-40]'"
)
def call(
    tool: Annotated[
        str,
        typer.Argument(
            metavar="TOOL",
            help="One of read, write, edit, bash, grep, find, ls.",
            autocompletion=complete_tools,
        ),
    ],
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Arguments of the tool, one each: KEY=@FILE is a file's content, KEY=- standard "
            "input, KEY=@@x the text @x.",
            autocompletion=complete_keys,
        ),
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="Arguments as one JSON object.")
    ] = None,
    on: On = None,
    cwd: Cwd = None,
    root: Root = None,
    unconfined_commands: Unconfined = False,  # noqa: FBT002 - an option of the command line
    forks: Forks = 32,
    output: Annotated[
        Literal["text", "message", "json"],
        typer.Option(
            "--format",
            help="text: for people on a terminal, else as message; message: what a model would "
            "read; json: the whole message.",
        ),
    ] = "text",
    policy: PolicyOption = None,
    audit: Audit = None,
    log: Log = None,
) -> None:
    """Run one tool call and print its result.

    The tools and their keys; those in brackets may be left out:

    \b
      read   path [offset] [limit]
      write  path content
      edit   path edits='[{"old_text": "...", "new_text": "..."}]'
      bash   command [timeout]
      grep   pattern [path] [glob] [ignore_case] [literal] [context] [limit]
      find   pattern [path] [limit]
      ls     [path] [limit]

    A command may run for 120 seconds if it has no timeout of its own.

    On many targets, each is answered as soon as it is done, and none waits for one that is slow or
    dead. Each line begins with its target's name, or is {"target": ..., "message": {...}}. On a
    terminal, a table shows the state of all meanwhile. The exit code is 3 if a target was
    unreachable, else 1 if a result is an error. An interrupt ends what runs; a second one does not
    wait until all is closed.
    """  # noqa: D301 - click wants the backspace
    from toolkit.cli.session import Where, run_session

    targets = _targets(on)
    where = Where(cwd=cwd, root=root, unconfined_commands=unconfined_commands)
    asked = (tool, pairs or [], args, output)
    with _log(log, targets) as events, _control(policy, audit) as control:
        if targets.many:
            from toolkit.cli.fleet import call_everywhere

            code = call_everywhere(targets, where, forks, *asked, control, events)
        else:
            from toolkit.cli.call import call_once

            url = targets.targets[0].url
            code = run_session(
                call_once, url, where, *asked, url, control, events, keep_output=True
            )
    _exit(code)


@app.command(
    epilog='Example: echo \'{"id":"1","name":"ls","arguments":{}}\' | toolkit run -',
)
def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines; - for standard input.")],
    on: On = None,
    cwd: Cwd = None,
    root: Root = None,
    unconfined_commands: Unconfined = False,  # noqa: FBT002
    forks: Forks = 32,
    events: Annotated[  # noqa: FBT002 - an option of the command line
        bool, typer.Option("--events", help="Print every event, not only result messages.")
    ] = False,
    sequential: Annotated[  # noqa: FBT002
        bool, typer.Option("--sequential", help="One call of a batch at a time.")
    ] = False,
    on_error: Annotated[
        Literal["continue", "cancel"],
        typer.Option(help="What an error does to the other calls of its batch."),
    ] = "continue",
    concurrency: Annotated[
        int, typer.Option(min=1, help="Most calls of a batch at one time.")
    ] = 32,
    output: Annotated[
        Literal["text", "json"] | None,
        typer.Option(
            "--format",
            help="text: for people; json: lines of JSON. By default text on a terminal, else json.",
        ),
    ] = None,
    policy: PolicyOption = None,
    audit: Audit = None,
    log: Log = None,
) -> None:
    """Run calls from JSON lines as they come; print one result message a line.

    A line is one call, {"id": ..., "name": ..., "arguments": {...}}, or a list of calls that
    form one batch. A malformed line gets an error message of its own, and the rest still runs.
    An interrupt (SIGINT) aborts the running batch, prints its messages and leaves nothing behind.

    On many targets, FILE is read to its end first, and nothing is run if a line is malformed. Then
    all calls are run on each, and a line of output is {"target": ..., "message": {...}}. The exit
    code is 3 if a target was unreachable, else 1 if a result is an error; with one target, errors
    are answers and the code is 0.
    """
    from toolkit.cli.run import RunOptions, run_lines
    from toolkit.cli.screen import on_terminal
    from toolkit.cli.session import Where, run_session

    targets = _targets(on)
    where = Where(cwd=cwd, root=root, unconfined_commands=unconfined_commands)
    wants_text = output == "text" or (output is None and on_terminal())
    options = RunOptions(
        events=events,
        rendered=wants_text and not events,
        tool_execution="sequential" if sequential else "parallel",
        on_error=on_error,
        max_concurrency=concurrency,
    )
    with _log(log, targets) as log_events, _control(policy, audit) as control:
        if targets.many:
            from toolkit.cli.fleet import run_everywhere

            code = run_everywhere(targets, where, forks, file, options, control, log_events)
        else:
            url = targets.targets[0].url
            code = run_session(run_lines, url, where, file, options, url, control, log_events)
    _exit(code)


tools = typer.Typer(
    invoke_without_command=True,
    epilog="Examples: toolkit tools; toolkit tools --format anthropic --strict; "
    "toolkit tools prompt",
)
app.add_typer(tools, name="tools")


@tools.callback()
def _tools(
    context: typer.Context,
    output: Annotated[
        Literal["text", "json", "anthropic", "openai", "openai-responses", "gemini", "mcp"],
        typer.Option("--format", help="text: for people; the others: JSON as that API wants it."),
    ] = "text",
    strict: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--strict",
            help="For APIs that hold a model to the schema: all arguments required, or null.",
        ),
    ] = False,
) -> None:
    """Tell what the tools are: for people, or as the schemas that a model API gets."""
    if context.invoked_subcommand is None:
        from toolkit.cli.tools import print_tools

        _exit(print_tools(output, strict=strict))


@tools.command()
def prompt() -> None:
    """Print the section of a system prompt that tells a model of the tools."""
    from toolkit.cli.tools import print_prompt

    _exit(print_prompt())


@app.command(epilog="Example: toolkit check docker://web --format json")
def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="As --on of the other commands.",
            autocompletion=complete_targets,
        ),
    ] = "local:",
    cwd: Cwd = None,
    output: Annotated[
        Literal["text", "json"],
        typer.Option("--format", help="text: for people; json: one object, with keys that stay."),
    ] = "text",
    remove_kept: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--remove-kept",
            help="Remove the kept outputs of commands of this user, but those that a running "
            "engine holds.",
        ),
    ] = False,
) -> None:
    """Tell what a target offers and which promises are weaker there."""
    from toolkit.cli.check import check_target
    from toolkit.cli.session import run_until_interrupted

    _exit(run_until_interrupted(check_target, target, cwd, output, remove_kept))


@app.command()
def demo(
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="TARGET",
            help="Do it there instead, as on docker+run://IMAGE; nothing stays there.",
            autocompletion=complete_targets,
        ),
    ] = None,
) -> None:
    """Watch a scripted agent find and fix a bug, on this machine and in memory (a few seconds)."""
    from toolkit.cli.demo import run_demo, run_demo_on
    from toolkit.cli.session import run_until_interrupted

    if on is None:
        _exit(run_until_interrupted(run_demo))
    _exit(run_until_interrupted(run_demo_on, on))


@docker.command()
def prune(
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The Docker engine, as unix:///run/docker.sock; else the one that `docker` uses.",
        ),
    ] = None,
    output: Annotated[
        Literal["text", "json"], typer.Option("--format", help="json: one object.")
    ] = "text",
) -> None:
    """Remove containers of docker+run:// targets whose process has ended and left them."""
    from toolkit.cli.docker import prune_containers
    from toolkit.cli.session import run_until_interrupted

    _exit(run_until_interrupted(prune_containers, engine, output))


@audit_app.command(epilog="Example: toolkit audit verify run.audit --head 5f3a...")
def verify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A log that --audit has written.")],
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="What a run has told as its head: shows whether lines after it were cut off.",
        ),
    ] = None,
) -> None:
    """Check that no entry of an audit log was changed, taken out or put in."""
    from toolkit.cli.control import verify_audit

    _exit(verify_audit(file, head))


def _targets(on: list[str] | None) -> Targets:
    from toolkit.cli.hosts import read_targets

    try:
        return read_targets(on or ["local:"])
    except ValueError as error:
        _refuse(str(error))


@contextmanager
def _control(policy: str | None, audit: str | None) -> Iterator[Control]:
    from toolkit.cli.control import open_control

    with ExitStack() as stack:
        try:
            control = stack.enter_context(open_control(policy, audit))
        except ValueError as error:
            _refuse(str(error))
        yield control


def _log(file: str | None, targets: Targets) -> AbstractContextManager[EventLog | None]:
    if file is None:
        return nullcontext()
    from toolkit.cli.log import EventLog
    from toolkit.cli.shown import named

    try:
        return EventLog(file, named(targets.targets[0].url))
    except OSError as error:
        _refuse(f"--log {file}: {error.strerror}")


def _refuse(why: str) -> NoReturn:
    from toolkit.cli.session import complain

    raise typer.Exit(complain(why, EXIT_USAGE)) from None


def _exit(code: int) -> NoReturn:
    raise typer.Exit(code)
