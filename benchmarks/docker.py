"""A container's files and commands against an exec of the docker SDK for each, and `docker exec`.

Needs a Docker engine with the tests' images (`scripts/services up`); gives no rows without one.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import anyio.to_thread

from backends.docker import DockerBackend
from benchmarks.harness import Figure, compare, program, single
from benchmarks.memory import resident_mb
from benchmarks.place import call_of
from toolkit import coding_tools

PYTHON, BUSYBOX = "remotehands-test/python", "remotehands-test/busybox"
FOLDER = "/work"
AT_ONCE = 32
IN_A_ROW = 40
FILES = 5000
MANY = 16
#: Fills a folder as `benchmarks.search` does.
FILL = f"""
i=0; text=$(n=0; while [ $n -lt 60 ]; do echo "line $n of some ordinary text"; n=$((n+1)); done)
while [ $i -lt {FILES} ]; do
  d=tree/d$((i % 50))/e$((i % 7)); [ -d $d ] || mkdir -p $d
  if [ $((i % 100)) = 0 ]; then m=needle_here; else m=; fi
  printf '%s\\n%s\\n%s\\n' "$text" "$m" "$text" > $d/f$i.txt; i=$((i+1))
done"""


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    import docker

    try:
        client = docker.from_env(max_pool_size=AT_ONCE)
        client.images.get(PYTHON)
    except docker.errors.DockerException as error:
        print(f"no containers: {error}", file=sys.stderr)
        return
    with _container(client, PYTHON) as container:
        async for figure in _with_python(container, 5 if quick else 15):
            yield figure
    with _container(client, BUSYBOX) as container:
        async for figure in _without_python(container, 5 if quick else 15):
            yield figure
    client.close()


async def _with_python(container: Any, rounds: int) -> AsyncIterator[Figure]:
    async with _tools(container) as (backend, call):
        exec_run = _in_threads(container)
        yield await compare(
            "bash true in a container",
            lambda: call("bash", command="true"),
            lambda: exec_run(["bash", "-c", "true"]),
            against="SDK exec",
            goal=1 / 20,
            rounds=rounds,
            ours_in_a_row=IN_A_ROW,
        )
        yield await _read(call, exec_run, "read 1 KB in a container", 1 / 40, rounds)
        yield await _write(call, exec_run, "write 1 KB in a container", 1 / 25, rounds)
        yield await compare(
            f"{AT_ONCE} commands at once in a container",
            lambda: _at_once(lambda: call("bash", command="true")),
            lambda: _at_once(lambda: exec_run(["bash", "-c", "true"])),
            against="SDK execs in as many threads",
            goal=1 / 30,
            rounds=max(2, rounds // 5),
            ours_in_a_row=IN_A_ROW,
        )
        async for figure in _ten_megabytes(container, backend, rounds):
            yield figure
        await backend.exec(FILL, cwd=FOLDER, on_data=lambda _: None)
        yield await compare(
            "grep a literal in 5,000 files in a container",
            lambda: call("grep", pattern="needle_here", literal=True, path="tree"),
            program(
                "docker", "exec", container.id, "rg", "-n", "-F", "needle_here", f"{FOLDER}/tree"
            ),
            against="docker exec rg",
            goal=2,
            rounds=rounds,
        )
    yield await compare(
        "attach to first result",
        lambda: _attach_and_read(container),
        program("docker", "exec", container.id, "true"),
        against="docker exec true",
        goal=3,
        rounds=rounds,
    )
    yield await single(
        "memory of ours for each more attached container",
        lambda: _memory_of_one_more(container.id),
        goal=1.5,
        unit="MB",
    )


async def _without_python(container: Any, rounds: int) -> AsyncIterator[Figure]:
    async with _tools(container) as (_, call):
        exec_run = _in_threads(container)
        yield await _read(call, exec_run, "read 1 KB without python", 1 / 15, rounds)
        yield await _write(call, exec_run, "write 1 KB without python", 1 / 15, rounds)
        yield await compare(
            "bash true without python",
            lambda: call("bash", command="true"),
            lambda: exec_run(["sh", "-c", "true"]),
            against="SDK exec",
            goal=1 / 8,
            rounds=rounds,
            ours_in_a_row=IN_A_ROW,
        )


async def _read(call: Any, exec_run: Any, name: str, goal: float, rounds: int) -> Figure:
    await call("write", path="small.txt", content="x" * 1023 + "\n")
    return await compare(
        name,
        lambda: call("read", path="small.txt"),
        lambda: exec_run(["cat", f"{FOLDER}/small.txt"]),
        against="SDK exec of cat",
        goal=goal,
        rounds=rounds,
        ours_in_a_row=IN_A_ROW,
    )


async def _write(call: Any, exec_run: Any, name: str, goal: float, rounds: int) -> Figure:
    content = "x" * 1023 + "\n"
    return await compare(
        name,
        lambda: call("write", path="written.txt", content=content),
        lambda: exec_run(["sh", "-c", f'printf %s "$1" > {FOLDER}/bare.txt', "sh", content]),
        against="SDK exec of printf",
        goal=goal,
        rounds=rounds,
        ours_in_a_row=IN_A_ROW,
    )


async def _ten_megabytes(container: Any, backend: Any, rounds: int) -> AsyncIterator[Figure]:
    data = bytes(range(256)) * 40960
    path = f"{FOLDER}/ten"
    await backend.write_file(path, data)

    def get() -> bytes:
        return b"".join(container.get_archive(path)[0])

    def put() -> None:
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            member = tarfile.TarInfo("ten")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        container.put_archive(FOLDER, tar.getvalue())

    yield await compare(
        "read 10 MB from a container",
        lambda: backend.read_file(path),
        lambda: anyio.to_thread.run_sync(get),
        against="get_archive",
        goal=1,
        rounds=rounds,
    )
    yield await compare(
        "write 10 MB into a container",
        lambda: backend.write_file(path, data),
        lambda: anyio.to_thread.run_sync(put),
        against="put_archive",
        goal=1,
        rounds=rounds,
    )


@contextmanager
def _container(client: Any, image: str) -> Iterator[Any]:
    container = client.containers.run(
        image,
        ["sleep", "3600"],
        detach=True,
        init=True,
        network_mode="none",
        labels={"remotehands-test": "benchmark"},
    )
    try:
        yield container
    finally:
        container.remove(force=True, v=True)


@asynccontextmanager
async def _tools(container: Any) -> AsyncIterator[tuple[Any, Any]]:
    async with DockerBackend.attach(container.id, workdir=FOLDER) as backend:
        yield backend, call_of(coding_tools(backend))


def _in_threads(container: Any) -> Callable[[list[str]], Awaitable[Any]]:
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def exec_run(argv: list[str]) -> Any:
        done = await anyio.to_thread.run_sync(
            lambda: container.exec_run(argv, demux=False), limiter=limiter
        )
        assert done.exit_code == 0, done.output
        return done

    return exec_run


async def _at_once(call: Callable[[], Awaitable[Any]]) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE):
            group.start_soon(call)


async def _attach_and_read(container: Any) -> None:
    async with _tools(container) as (_, call):
        await call("read", path="small.txt")


async def _memory_of_one_more(container: str) -> float:
    argv = [sys.executable, "-m", "benchmarks.docker", container]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(argv, check=True, capture_output=True, text=True)
    )
    return float(done.stdout)


async def _measure(container: str) -> None:
    backends = [DockerBackend.attach(container, workdir=FOLDER) for _ in range(MANY + 1)]
    for number, backend in enumerate(backends):
        await backend.__aenter__()
        await backend.read_file(f"{FOLDER}/small.txt")
        if not number:
            before = resident_mb(field="VmRSS")
    print((resident_mb(field="VmRSS") - before) / MANY)
    for backend in reversed(backends):
        await backend.__aexit__(None, None, None)


if __name__ == "__main__":
    anyio.run(_measure, sys.argv[1])
