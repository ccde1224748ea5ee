"""The command's entry: options, help texts and exit codes; the work is in the modules beside it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from toolkit.cli.targets import TARGETS

__all__ = ["main"]

EXIT_ERROR, EXIT_USAGE, EXIT_UNREACHABLE = 1, 2, 3

app = typer.Typer(
    name="toolkit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Run an agent's tool calls (read, write, edit, bash, grep, find, ls) on any machine.",
    epilog="Exit codes: 0 done, 1 the result is an error, 2 usage, 3 target unreachable, "
    "130 interrupted.",
)

docker = typer.Typer(no_args_is_help=True, help="Look after containers of our own.")
app.add_typer(docker, name="docker")

On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="TARGET",
        help=f"Where the tools act: {'; '.join(TARGETS.values())}.",
    ),
]
Cwd = Annotated[
    str | None,
    typer.Option(help="Working folder on the target, for relative paths and commands."),
]


def main() -> None:
    """Run the command line; never returns."""
    app()


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


@app.command(epilog="Example: toolkit call read path=src/main.py limit=20")
def call(
    tool: Annotated[
        str, typer.Argument(metavar="TOOL", help="One of read, write, edit, bash, grep, find, ls.")
    ],
    pairs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Arguments of the tool, one each."),
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="Arguments as one JSON object.")
    ] = None,
    on: On = "local:",
    cwd: Cwd = None,
    output: Annotated[
        Literal["text", "json"],
        typer.Option("--format", help="text: what a model would read; json: the whole message."),
    ] = "text",
) -> None:
    """Run one tool call and print its result."""
    from toolkit.cli.call import call_once
    from toolkit.cli.session import run_session

    _exit(run_session(call_once, on, cwd, tool, pairs or [], args, output, keep_output=True))


@app.command(
    epilog='Example: echo \'{"id":"1","name":"ls","arguments":{}}\' | toolkit run -',
)
def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines; - for standard input.")],
    on: On = "local:",
    cwd: Cwd = None,
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
) -> None:
    """Run calls from JSON lines as they come; print one result message a line.

    A line is one call, {"id": ..., "name": ..., "arguments": {...}}, or a list of calls that
    form one batch. A malformed line gets an error message of its own, and the rest still runs.
    An interrupt (SIGINT) aborts the running batch, prints its messages and leaves nothing behind.
    """
    from toolkit.cli.run import RunOptions, run_lines
    from toolkit.cli.session import run_session

    options = RunOptions(
        events=events,
        tool_execution="sequential" if sequential else "parallel",
        on_error=on_error,
        max_concurrency=concurrency,
    )
    _exit(run_session(run_lines, on, cwd, file, options))


@app.command(epilog="Example: toolkit check docker://web --format json")
def check(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="As --on of the other commands.")
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
        ),
    ] = None,
) -> None:
    """Watch a scripted agent find and fix a bug, on this machine and in memory (a few seconds)."""
    from toolkit.cli.demo import run_demo, run_demo_on
    from toolkit.cli.session import run_until_interrupted

    _exit(run_until_interrupted(run_demo) if on is None else run_until_interrupted(run_demo_on, on))


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


def _exit(code: int) -> None:
    raise typer.Exit(code)
