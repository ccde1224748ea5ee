"""The command's entry: options, help texts and exit codes; the work is in the modules beside it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = ["main"]

EXIT_ERROR, EXIT_USAGE, EXIT_UNREACHABLE = 1, 2, 3

app = typer.Typer(
    name="toolkit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Run an agent's tool calls (read, write, edit, bash, grep, find, ls) on any machine.",
    epilog="Exit codes: 0 done, 1 the result is an error, 2 usage, 3 target unreachable.",
)

On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="TARGET",
        help="Where the tools act: local:, local:/dir, memory:, memory:/dir (a copy of a folder), "
        "docker://CONTAINER, docker+run://IMAGE, command:ARGV.",
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


@app.command()
def demo() -> None:
    """Watch a scripted agent find and fix a bug, on this machine and in memory (a few seconds)."""
    from toolkit.cli.demo import run_demo
    from toolkit.cli.session import run_async

    _exit(run_async(run_demo))


def _exit(code: int) -> None:
    raise typer.Exit(code)
