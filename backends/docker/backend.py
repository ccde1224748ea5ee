"""A container as a place to act: one that somebody runs, or one of our own."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio.abc import TaskGroup

from backends.docker.channel import ExecChannel, open_exec
from backends.docker.daemon import Daemon, acquire, release
from backends.docker.describe import describe_container
from backends.docker.lease import keep_alive
from backends.docker.options import check_container, check_seconds
from backends.docker.sandbox import Sandbox, make_container, remove_container
from backends.docker.silence import SilenceWatch
from backends.docker.state import find_container, state_listed, state_of
from backends.docker.stream import HijackedStream
from backends.remote import bootstrap
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel
from operations import BackendUnavailable, TargetFacts

if TYPE_CHECKING:
    from docker import APIClient

__all__ = ["DockerBackend"]

_REMOVE_S = 20.0
#: After this long the list of containers is asked about one that does not answer.
SILENT_S = 3.0


class DockerBackend(RemoteBackend):
    """A RemoteBackend whose engine runs in a container; made by `attach` or `run`.

    Nothing is installed in the container. Each connection asks for the container by its name
    again, so that one which was restarted or made anew is found.

    Args:
        container: Name, id or compose service; "" until there is one.
        target: The target as the user named it, for errors.
        user: As for `docker exec --user`; "" for the container's own.
        workdir: The folder that tools work in; None for the container's working folder.
        env: Variables for every command, on top of the container's own.
        engine: The Docker engine's address; None for the one that `docker` would use.
        own: Makes a container of our own, given the engine's client; None for none.
        root: See `RemoteBackend`; what `workdir` is by itself.
        container_lease_s: Seconds without us after which a container of our own ends.
        connect_timeout_s: Seconds for each step of connecting.
        options: See `RemoteBackend`.
    """

    def __init__(
        self,
        container: str,
        *,
        target: str,
        user: str = "",
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        engine: str | None = None,
        own: _Own | None = None,
        root: str | None = None,
        connect_timeout_s: float = 30.0,
        **options: Any,
    ) -> None:
        workdir = workdir or root
        super().__init__(
            self._open,
            target=target,
            cwd=workdir or "/",
            env=env,
            root=root,
            connect_timeout_s=connect_timeout_s,
            open_lane=self._open_program,
            **options,
        )
        self._container = container
        self._target = target
        self._user = user
        self._workdir = workdir
        # The engine itself gets them too, so that HOME is what `~` means.
        self._variables = dict(env or {})
        self._engine = engine
        self._own = own
        self._timeout_s = connect_timeout_s
        self._daemon: Daemon | None = None
        self._silence: SilenceWatch | None = None
        self._tasks: TaskGroup | None = None
        self._container_id = ""

    @classmethod
    def attach(
        cls,
        container: str,
        *,
        user: str | None = None,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        engine: str | None = None,
        **options: Any,
    ) -> DockerBackend:
        """Return a backend in a container that somebody else runs, and that goes on after it.

        Args:
            container: Its name, its id, or the name of a compose service that is one container.
            user: Whom everything runs as, as for `docker exec --user`; None for the container's.
            workdir: The folder that tools work in; None for the container's working folder.
            env: Variables for every command, on top of the container's own.
            engine: The Docker engine's address; None for the one that `docker` would use.
            options: `root` (what `workdir` is by itself), `unconfined_commands`, `lease_s`,
                `connect_timeout_s`, `settings`: see `RemoteBackend`.
        """
        if not container:
            raise ValueError("container is a name, an id or a compose service, not ''")
        check_container(user=user, workdir=workdir, env=env)
        return cls(
            container,
            target=f"docker://{container}",
            user=user or "",
            workdir=workdir,
            env=env,
            engine=engine,
            **options,
        )

    @classmethod
    def run(
        cls,
        image: str,
        *,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        engine: str | None = None,
        container_lease_s: float = 60.0,
        root: str | None = None,
        unconfined_commands: bool = False,
        lease_s: float | None = 30.0,
        connect_timeout_s: float = 30.0,
        settings: Mapping[str, Any] | None = None,
        **sandbox: Any,
    ) -> DockerBackend:
        """Return a backend in a hardened container that is started for it and removed after it.

        The container ends by itself, and is removed, at most two of its leases after this process
        has died.

        Args:
            image: An image that the engine has; with a folder behind it ("IMAGE/dir", and
                "IMAGE//dir" where that could be an image too), that is the workspace.
            workdir: The workspace, which tools work in and where they can write; None for what
                `image` says, else the image's working folder, else /workspace. What the image has
                there is there.
            env: Variables of the container.
            engine: The Docker engine's address; None for the one that `docker` would use.
            container_lease_s: Seconds without a beat of ours after which the container ends.
            root: See `RemoteBackend`; what `workdir` is by itself.
            unconfined_commands: See `RemoteBackend`.
            lease_s: See `RemoteBackend`.
            connect_timeout_s: Seconds for each step of connecting.
            settings: See `RemoteBackend`.
            sandbox: Fields of `Sandbox`, each of which relaxes one limit.

        Raises:
            TypeError: `Sandbox` has no such field.
        """
        if not image:
            raise ValueError("image is the name of an image, not ''")
        check_container(workdir=workdir, env=env)
        check_seconds("container_lease_s", container_lease_s)
        own = _Own(image, Sandbox(**sandbox), workdir or root, dict(env or {}), container_lease_s)
        return cls(
            "",
            target=f"docker+run://{image}",
            workdir=workdir,
            env=env,
            engine=engine,
            own=own,
            root=root,
            unconfined_commands=unconfined_commands,
            lease_s=lease_s,
            connect_timeout_s=connect_timeout_s,
            settings=settings,
        )

    @property
    def facts(self) -> TargetFacts | None:
        """See `TargetOperations`; the container's id is the machine's."""
        facts = super().facts
        if facts is None:
            return None
        return dataclasses.replace(facts, machine_id=f"docker:{self._container_id}")

    @property
    def container_id(self) -> str:
        """The id of the container, once it is known."""
        return self._container_id

    async def describe(self) -> dict[str, dict[str, Any]]:
        """Return what the Docker engine tells of the container (see `describe_container`).

        Raises:
            BackendUnavailable: It tells nothing.
        """
        daemon = self._daemon
        if daemon is None:
            raise BackendUnavailable(
                self._target, "the backend is not open; use it in `async with`"
            )
        return await daemon.run(
            lambda api: describe_container(api, self._container_id), self._target, self._timeout_s
        )

    async def __aenter__(self) -> Self:
        if self._daemon is not None:
            raise BackendUnavailable(self._target, "the backend is in use already")
        self._daemon = await acquire(self._engine, self._target, self._timeout_s)
        self._silence = SilenceWatch(self._daemon, self._target)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._silence.run)
        try:
            if self._own is not None:
                await self._start(self._own, self._daemon)
            await super().__aenter__()
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await super().__aexit__(exc_type, exc, traceback)
        finally:
            await self._leave()

    async def _start(self, own: _Own, daemon: Daemon) -> None:
        """Make the container and begin to keep it alive."""
        made = await daemon.run(
            lambda api: own.make(api, self._target),
            self._target,
            self._timeout_s,
            discard=lambda api, made: remove_container(api, made[0]),
            makes=True,
        )
        self._container, self._workdir = made
        self._container_id = self._container
        self.cwd = self._workdir
        assert self._tasks is not None
        self._tasks.start_soon(keep_alive, daemon, self._container, own.lease_s, self._target)

    async def _leave(self) -> None:
        """Remove what is ours and give the Docker engine back."""
        daemon, self._daemon = self._daemon, None
        if daemon is None:
            return
        try:
            if self._own is not None and self._container:
                with anyio.CancelScope(shield=True):
                    await self._remove(daemon)
            tasks, self._tasks = self._tasks, None
            if tasks is not None:
                tasks.cancel_scope.cancel()
                await tasks.__aexit__(None, None, None)  # raises when we are cancelled, on trio
        finally:
            release(daemon)

    async def _remove(self, daemon: Daemon) -> None:
        def remove(api: APIClient) -> None:
            remove_container(api, self._container)

        # An engine that does not answer cannot remove it; then the container's lease ends it.
        with contextlib.suppress(BackendUnavailable):
            await daemon.run(remove, self._target, _REMOVE_S)
        self._container = ""

    async def _open(self) -> Channel:
        return await self._open_program(bootstrap.shell_argv(), "the engine")

    async def _open_program(self, argv: Sequence[str], name: str = "the program") -> Channel:
        daemon = self._daemon
        if daemon is None:
            raise BackendUnavailable(
                self._target, "the backend is not open; use it in `async with`"
            )
        container, exec_id, stream = await self._opened(daemon, list(argv))
        self._container_id = str(container["Id"])
        if self._workdir is None:
            self._workdir = self.cwd = str(container["Config"].get("WorkingDir") or "/")
        channel = ExecChannel(
            daemon, self._container_id, exec_id, stream, target=self._target, program=name
        )
        if self._silence is not None:
            self._silence.add(channel)
        return channel

    async def _opened(
        self, daemon: Daemon, argv: list[str]
    ) -> tuple[dict[str, Any], str, HijackedStream]:
        """Open an exec; if that takes long in a container that we know, ask Docker's list about it.

        Docker 20.10 says nothing about one container while that is frozen, only lists it.
        """
        known, opened, state = self._container_id, None, None
        failure: BackendUnavailable | None = None
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                nonlocal state
                while state is None:
                    await anyio.sleep(SILENT_S)
                    with contextlib.suppress(BackendUnavailable):
                        state = await daemon.run(
                            lambda api: state_listed(api, known), self._target, SILENT_S
                        )
                tasks.cancel_scope.cancel()

            if known:
                tasks.start_soon(watch)
            try:
                opened = await daemon.run(
                    lambda api: self._open_exec(api, argv),
                    self._target,
                    self._timeout_s,
                    discard=lambda _api, opened: opened[2].close(),
                )
            except BackendUnavailable as error:
                failure = error
            tasks.cancel_scope.cancel()
        if opened is None:
            raise failure or BackendUnavailable(self._target, f"{state}")
        return opened

    def _open_exec(
        self, api: APIClient, argv: list[str]
    ) -> tuple[dict[str, Any], str, HijackedStream]:
        from docker.errors import APIError

        container = find_container(api, self._container, self._target)
        try:
            exec_id, stream = open_exec(
                api, container["Id"], argv, user=self._user, env=self._variables
            )
        except APIError:
            # It may have been stopped between the two requests.
            if state := state_of(api, container["Id"]):
                raise BackendUnavailable(self._target, state) from None
            raise
        return container, exec_id, stream


@dataclasses.dataclass(frozen=True, slots=True)
class _Own:
    """How a container of our own is made and thrown away."""

    image: str
    sandbox: Sandbox
    workdir: str | None
    env: dict[str, str]
    lease_s: float

    def make(self, api: APIClient, target: str) -> tuple[str, str]:
        """Start it and return its id and its workspace; in a thread."""
        return make_container(
            api,
            self.image,
            self.sandbox,
            workspace=self.workdir,
            env=self.env,
            lease_s=self.lease_s,
            target=target,
        )
