"""Random runs of operations give the same messages on every kind of place."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from backends.docker import DockerBackend
from backends.local import EngineBackend, LocalBackend
from backends.memory import MemoryBackend
from operations import OperationError
from tests.conformance.containers import ShellSeeder
from tests.conformance.places import Place, Seeder
from tests.conformance.seeders import HostSeeder, TreeSeeder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

pytestmark = [pytest.mark.timeout(3600)]

#: How many sequences to run; each has up to STEPS calls.
SEQUENCES = int(os.environ.get("REMOTEHANDS_SEQUENCES", "100"))
STEPS = 12

#: How a place's own means say no: a seeder that runs programs asserts that they succeed.
REFUSALS = (OSError, ValueError, AssertionError, OperationError)
#: Details that may differ: they tell which engine did the work, not what came out.
_DIFFERING = {"engine", "device", "inode", "shell"}

NAMES = ["a", "b.txt", "d", "d/c.txt", "d/e/f", "link", "d/link", "\u00e9", "x y", ".hid", "-n"]
LINES = ["", "one", "two needle", "\u00e9t\u00e9", "needle", "x = \u201c1\u201d", "\ttab ", "-- >"]
GLOBS = ["*", "**", "*.txt", "d/*", "d/**", "[ab]*", "{a,d}", "**/c.txt", ".*", "nope", "["]
PATTERNS = ["needle", "^one$", "\u00c9", "(", "n.e", "t$", "\\bone\\b", "x|y", "--", "a{"]

names = st.sampled_from(NAMES)
paths = st.one_of(names, st.sampled_from([".", "./a", "d/../a", "nope/x", "a/x", "d/", "@a", "~"]))
texts = st.builds(
    lambda lines, ending, last: ending.join(lines) + (ending if last else ""),
    st.lists(st.sampled_from(LINES), max_size=6),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.booleans(),
)
contents = st.one_of(
    texts.map(lambda text: text.encode()),
    st.sampled_from([b"", b"\x00bin", b"\xff\xfeo\x00\n\x00", b"caf\xe9\n", b"\xef\xbb\xbfone\n"]),
)
flags = st.booleans()


class Sameness(RuleBasedStateMachine):
    """The same steps on all places; every answer is compared with the first place's."""

    portal: Any
    #: For each kind of place: a backend, how to prepare files there, and a folder to work in.
    backends: dict[str, tuple[Any, Seeder, str]]
    count = 0

    @initialize()
    def start(self) -> None:
        type(self).count += 1
        name = f"w{type(self).count}"
        self.places: dict[str, Place] = {}
        for kind, (backend, seeder, folder) in self.backends.items():
            place = Place(backend, f"{folder}/{name}", seeder, "")
            self.portal.call(place.mkdir, "")
            self.places[kind] = place

    def teardown(self) -> None:
        places = getattr(self, "places", {})
        trees = {kind: self.portal.call(_tree, place) for kind, place in places.items()}
        for place in places.values():
            self.portal.call(place.remove, "")
        for kind, tree in trees.items():
            assert tree == trees["local"], kind

    def compare(self, tool: str, arguments: dict[str, Any]) -> None:
        told = {kind: self.answer(kind, tool, arguments) for kind in self.places}
        reference = next(iter(told.values()))
        for kind, answer in told.items():
            assert answer == reference, (kind, tool, arguments)

    def answer(self, kind: str, tool: str, arguments: dict[str, Any]) -> Any:
        place = self.places[kind]
        message = self.portal.call(place.call, tool, dict(arguments))
        wire = message.model_dump(mode="json")
        for name in ("timestamp", "duration_ms", "tool_call_id"):
            del wire[name]
        home = place.backend.facts.home
        return _without(wire, {place.cwd: "<cwd>", home: "<home>"})

    def seed(self, how: str, *arguments: Any) -> None:
        outcomes = set()
        for place in self.places.values():
            try:
                self.portal.call(getattr(place, how), *arguments)
            except REFUSALS:
                outcomes.add("refused")
            else:
                outcomes.add("done")
        # Places that disagree about a seed would be compared on different trees.
        assert len(outcomes) == 1, (how, arguments, outcomes)

    def is_folder(self, name: str) -> bool:
        try:
            self.portal.call(self.places["local"].names, name)
        except OSError:
            return False
        return True

    # Preparing ---------------------------------------------------------------------------

    @rule(name=names, content=contents)
    def put(self, name: str, content: bytes) -> None:
        if not self.is_folder(name):
            # A file that may not be written is seeded anew: some seeders are no superusers.
            self.seed("remove", name)
        self.seed("put", name, content)

    @rule(name=names, to=st.sampled_from(["a", "d", "nope", "../a", "link", ".", "d/c.txt"]))
    def symlink(self, name: str, to: str) -> None:
        self.seed("symlink", to, name)

    @rule(existing=names, name=names)
    def link(self, existing: str, name: str) -> None:
        self.seed("link", existing, name)

    @rule(name=names)
    def remove(self, name: str) -> None:
        self.seed("remove", name)

    @rule(rules=st.sampled_from(["*.txt\n", "/a\n", "d/\n", "!b.txt\n", "d/*\n!d/c.txt\n", "\\\n"]))
    def ignore(self, rules: str) -> None:
        self.seed("put", ".gitignore", rules)

    @rule(name=names, mode=st.sampled_from([0o644, 0o755, 0o600, 0o444, 0o000, 0o555]))
    def chmod(self, name: str, mode: int) -> None:
        if not self.is_folder(name):
            self.seed("chmod", name, mode)

    # Calling -----------------------------------------------------------------------------

    @rule(path=paths, offset=st.sampled_from([None, 1, 2, 9, 0]), limit=st.sampled_from([None, 1]))
    def read(self, path: str, offset: int | None, limit: int | None) -> None:
        self.compare("read", {"path": path, "offset": offset, "limit": limit})

    @rule(path=paths, content=texts)
    def write(self, path: str, content: str) -> None:
        self.compare("write", {"path": path, "content": content})

    @rule(path=paths, old=st.sampled_from(LINES), new=st.sampled_from(LINES), everywhere=flags)
    def edit(self, path: str, old: str, new: str, everywhere: bool) -> None:
        edits = [{"old_text": old, "new_text": new, "replace_all": everywhere}]
        self.compare("edit", {"path": path, "edits": edits})

    @rule(
        pattern=st.sampled_from(PATTERNS),
        path=st.one_of(st.none(), paths),
        glob=st.one_of(st.none(), st.sampled_from(GLOBS)),
        ignore_case=flags,
        context=st.sampled_from([0, 1]),
        limit=st.sampled_from([1, 100]),
    )
    def grep(self, **arguments: Any) -> None:
        self.compare("grep", arguments)

    @rule(pattern=st.sampled_from(GLOBS), path=st.one_of(st.none(), paths))
    def find(self, pattern: str, path: str | None) -> None:
        self.compare("find", {"pattern": pattern, "path": path})

    @rule(path=st.one_of(st.none(), paths), limit=st.sampled_from([None, 1]))
    def ls(self, path: str | None, limit: int | None) -> None:
        self.compare("ls", {"path": path, "limit": limit})


async def _tree(place: Place, folder: str = "") -> dict[str, Any]:
    """Return everything in a place by name: links by text, files by mode and content."""
    found: dict[str, Any] = {}
    await place.chmod(folder, 0o755)
    for name in await place.names(folder):
        path = os.path.join(folder, name)
        if (text := await place.readlink(path)) is not None:
            found[path] = text
            continue
        mode = await place.mode(path)
        await place.chmod(path, mode | 0o700)
        try:
            found[path] = (mode, await place.get(path))
        except REFUSALS:
            found[path] = mode
            found |= await _tree(place, path)
    return found


def _without(value: Any, names: dict[str, str]) -> Any:
    """Return a message without what must differ: places' own names and engines."""
    if isinstance(value, dict):
        return {k: _without(v, names) for k, v in value.items() if k not in _DIFFERING}
    if isinstance(value, list):
        return [_without(item, names) for item in value]
    if isinstance(value, str):
        for name, stand_in in names.items():
            value = value.replace(name, stand_in)
    return value


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder with a home in it; every place makes files with the same rights."""
    folder = Path(tempfile.mkdtemp(prefix="sameness-"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    for name in ("home", "local", "engine"):
        (folder / name).mkdir()
    mask = os.umask(0o022)
    yield folder
    os.umask(mask)
    shutil.rmtree(folder, ignore_errors=True)


def _memory() -> tuple[Any, Callable[[Any], Seeder], str]:
    user, group = os.geteuid(), os.getegid()
    kind = {"cwd": "/workspace", "home": "/home/user", "uid": user, "gid": group, "umask": 0o022}
    return MemoryBackend(**kind), TreeSeeder, "/workspace"


def _container(name: str, folder: str) -> tuple[Any, Callable[[Any], Seeder], str]:
    # The same user everywhere: what a superuser may differs from what others may.
    user, env = f"{os.geteuid()}:{os.getegid()}", {"HOME": f"{folder}/home"}
    backend = DockerBackend.attach(name, user=user, workdir="/work", env=env)
    return backend, ShellSeeder, folder


@pytest.mark.unprivileged
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_every_place_answers_alike(loop: str, scratch: Path) -> None:
    host = lambda _backend: HostSeeder()  # noqa: E731
    made = {
        "local": (LocalBackend(cwd=str(scratch)), host, str(scratch / "local")),
        "engine": (EngineBackend(cwd=str(scratch)), host, str(scratch / "engine")),
        "memory": _memory(),
    }
    _run(loop, made, SEQUENCES // 2)


def test_containers_answer_alike(scratch: Path, compose_containers: Mapping[str, str]) -> None:
    """With an engine at the far end, and with nothing but a shell."""
    folder = f"/work/{scratch.name}"
    made = {
        "local": (LocalBackend(cwd=str(scratch)), lambda _: HostSeeder(), str(scratch / "local")),
        "memory": _memory(),
        "python": _container(compose_containers["python"], folder),
        "busybox": _container(compose_containers["busybox"], folder),
    }
    _run("asyncio", made, SEQUENCES // 4)


def _run(
    loop: str, made: dict[str, tuple[Any, Callable[[Any], Seeder], str]], sequences: int
) -> None:
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal(loop))
        Sameness.portal = portal
        Sameness.backends = {}
        for kind, (backend, seeder_of, folder) in made.items():
            entered = stack.enter_context(portal.wrap_async_context_manager(backend))
            portal.call(entered.make_directory, entered.facts.home)
            Sameness.backends[kind] = (entered, seeder_of(entered), folder)
        run_state_machine_as_test(
            Sameness,
            settings=settings(
                max_examples=sequences,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize="REMOTEHANDS_SEQUENCES" not in os.environ,
                suppress_health_check=list(HealthCheck),
            ),
        )
