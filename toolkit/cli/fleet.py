"""`toolkit call` and `toolkit run` on many targets at once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from toolkit import (
    Event,
    Fleet,
    HostMessage,
    HostStatus,
    Listener,
    MessageEnd,
    MessageStart,
    ToolCall,
    ToolRunner,
    coding_tools,
)
from toolkit.cli.answers import Prefixed, as_events, as_json, event_line
from toolkit.cli.call import CallFormat, parse_arguments
from toolkit.cli.hosts import Targets, labels
from toolkit.cli.output import Output
from toolkit.cli.run import RunOptions, read_script
from toolkit.cli.session import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    Where,
    abort_on_interrupt,
    complain,
    leave_threads,
    run_async,
)
from toolkit.cli.shown import named, shown
from toolkit.cli.table import has_terminal, live_table
from toolkit.cli.targets import open_target

if TYPE_CHECKING:
    from backends.targets import Backend
    from toolkit.cli.control import Control
    from toolkit.cli.log import EventLog
    from toolkit.fleet import MakeRunner
    from toolkit.toolset import CodingPlace

__all__ = ["call_everywhere", "run_everywhere"]

_MOST_NAMES = 20
#: How long threads are waited for after a second interrupt.
_HURRY_S = 1.0


def call_everywhere(
    targets: Targets,
    where: Where,
    forks: int,
    name: str,
    pairs: list[str],
    args: str | None,
    output: CallFormat,
    control: Control,
    log: EventLog | None = None,
) -> int:
    """Run one call on each target; print each result when it is there.

    Where a table is shown on the terminal that results are for too, they come after it, in the
    order of the targets.

    Returns:
        0 when all is well, 1 when a result is an error, 2 for what is malformed (nothing is run
        then), 3 when a target was unreachable, 130 after an interrupt.
    """
    ask = _AskOnce()
    try:
        places = _open_all(targets, where, ask, keep_output=True)
        tools = coding_tools(next(iter(places.values())))
        call = ToolCall(id="1", name=name, arguments=parse_arguments(args, pairs, tools, name))
    except ValueError as error:
        return complain(str(error), EXIT_USAGE)
    out_is_terminal = sys.stdout is not None and sys.stdout.isatty()
    job = _Job(
        places=places,
        ask=ask,
        script=[[call]],
        forks=forks,
        as_text=as_json if output == "json" else Prefixed(places).text,
        utf8=output == "json",
        table=has_terminal(),
        hold=has_terminal() and out_is_terminal,
        control=control,
        log=log,
    )
    return _do(job, targets.repeated)


def run_everywhere(
    targets: Targets,
    where: Where,
    forks: int,
    file: str,
    options: RunOptions,
    control: Control,
    log: EventLog | None = None,
) -> int:
    """Run all calls of `file`, which is read once, on each target; print each result as JSON.

    Returns:
        As `call_everywhere`; a malformed line is an error before anything is run.
    """
    ask = _AskOnce()
    try:
        places = _open_all(targets, where, ask, keep_output=False)
        script = read_script(file)
    except OSError as error:
        return complain(f"{file}: {error.strerror}", EXIT_USAGE)
    except ValueError as error:
        return complain(str(error), EXIT_USAGE)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    job = _Job(
        places=places,
        ask=ask,
        script=script,
        forks=forks,
        as_text=as_events if options.events else as_json,
        utf8=True,
        # On a terminal that shows the lines as they come, it would only be in their way.
        table=has_terminal() and not (sys.stdout is not None and sys.stdout.isatty()),
        options=options,
        control=control,
        log=log,
    )
    return _do(job, targets.repeated)


@dataclass(slots=True, kw_only=True)
class _Job:
    """What is to be done and how it is shown.

    Attributes:
        as_text: Gives the lines for an answer.
        table: Show a live table.
        hold: Print answers only after it.
        control: What holds calls back.
        options: How batches are run; None for one call.
        log: Gets every event, or None.
        held: The lines that come after the table, by target.
        hurried: Whether a second interrupt came.
    """

    places: dict[str, Backend]
    ask: _AskOnce
    script: list[list[ToolCall]]
    forks: int
    as_text: Callable[[HostMessage], str]
    utf8: bool
    table: bool
    control: Control
    hold: bool = False
    options: RunOptions | None = None
    log: EventLog | None = None
    held: dict[str, str] = field(default_factory=dict)
    hurried: bool = False


def _open_all(
    targets: Targets, where: Where, ask: _AskOnce, *, keep_output: bool
) -> dict[str, Backend]:
    """Return the backend of each target, by its URL, not yet entered.

    Raises:
        ValueError: One is malformed; the text names the file and line it stands in.
    """
    places = {}
    for target in targets.targets:
        asks = target.url.startswith("ssh:") and sys.stdin is not None and sys.stdin.isatty()
        options: dict[str, Any] = {"passphrase": ask.passphrase} if asks else {}
        try:
            places[target.url] = open_target(
                target.url, keep_output=keep_output, **where.options(), **options
            )
        except ValueError as error:
            raise ValueError(f"{target.origin}{error}") from None
    return places


class _AskOnce:
    """Asks for each key's passphrase on the terminal, once for all hosts that want that key.

    Attributes:
        asks: True while a question stands there.
    """

    def __init__(self) -> None:
        self.asks = False
        self._one_at_a_time = asyncio.Lock()
        self._given: dict[str, str] = {}

    async def passphrase(self, file: str) -> str:
        """Return the passphrase of a key's file."""
        from backends.ssh.prompt import ask_secret

        async with self._one_at_a_time:
            if file not in self._given:
                self.asks = True
                try:
                    self._given[file] = await ask_secret(f"\nPassphrase for key {shown(file)}: ")
                finally:
                    self.asks = False
            return self._given[file]


def _do(job: _Job, repeated: Sequence[str]) -> int:
    if repeated:
        told = _some([shown(named(url)) for url in repeated])
        print(f"toolkit: named more than once, worked on once: {told}", file=sys.stderr)
    code = run_async(_work, job)
    if job.hurried:
        leave_threads(code, _HURRY_S)
    return code


async def _work(job: _Job) -> int:
    # Names are looked up in threads of this pool; a few that hang must not hold up the others.
    pool = ThreadPoolExecutor(job.forks, thread_name_prefix="toolkit")
    asyncio.get_running_loop().set_default_executor(pool)
    with anyio.CancelScope() as everything:

        def hurry() -> None:
            job.hurried = True
            everything.cancel()

        async with abort_on_interrupt(again=hurry) as interrupt:
            out = Output(
                utf8=job.utf8, on_lost=lambda: interrupt.abort("nobody reads the output any more")
            )
            fleet = Fleet(
                job.places,
                job.script,
                forks=job.forks,
                signal=interrupt.signal,
                make_runner=_maker(job, out),
            )
            names = labels(list(job.places))
            table = live_table(
                names,
                lambda: fleet.statuses,
                is_paused=lambda: job.ask.asks or job.control.is_asking,
            )
            async with table if job.table else nullcontext(), fleet:
                async for answer in fleet:
                    await _show(job, answer, out)
    for host in job.places:
        if host in job.held:
            out.line(job.held[host])
    _tell_end(names, fleet.statuses)
    if out.lost is None and interrupt.signal.is_set():
        return EXIT_INTERRUPTED
    return out.exit_code(_exit_code(fleet.statuses))


async def _show(job: _Job, answer: HostMessage, out: Output) -> None:
    text = job.as_text(answer)
    if job.hold:
        job.held[answer.host] = text
    elif job.options is not None and job.options.events:
        out.line(text)  # as the events before it
    else:
        # In a thread: a reader that stops, as a pager does, must not stop the other hosts.
        await anyio.to_thread.run_sync(out.line, text, abandon_on_cancel=True)


def _maker(job: _Job, out: Output) -> MakeRunner:
    """Return what makes a host's runner; its events are told with the host's name."""
    options, log = job.options, job.log

    def make(host: str, place: CodingPlace, listener: Listener) -> ToolRunner:
        def print_event(event: Event) -> None:
            # Answers that the fleet gives itself have no events: it tells of all messages.
            if not isinstance(event, MessageStart | MessageEnd):
                out.line(event_line(host, event))

        listeners = [listener]
        if log is not None:
            listeners.append(lambda event: log.listen(event, named(host)))
        if options is None:
            return job.control.runner(place, host, listeners)
        return job.control.runner(
            place,
            host,
            [*listeners, print_event] if options.events else listeners,
            tool_execution=options.tool_execution,
            on_error=options.on_error,
            max_concurrency=options.max_concurrency,
        )

    return make


def _tell_end(names: Sequence[str], statuses: Sequence[HostStatus]) -> None:
    """Say on standard error how many hosts ended how, and which of them not well."""
    by_state: dict[str, list[str]] = {}
    for name, status in zip(names, statuses, strict=True):
        by_state.setdefault(status.state, []).append(name)
        if status.trouble is not None:
            complain(f"{name}: {status.trouble}", EXIT_ERROR)
    parts = [f"{len(by_state.pop('done', []))} done"]
    parts += [f"{len(hosts)} {state} ({_some(hosts)})" for state, hosts in by_state.items()]
    print(f"toolkit: {'; '.join(parts)}", file=sys.stderr)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _exit_code(statuses: Sequence[HostStatus]) -> int:
    states = {status.state for status in statuses}
    if "unreachable" in states:
        return EXIT_UNREACHABLE
    return 0 if states <= {"done"} else EXIT_ERROR
