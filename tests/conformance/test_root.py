"""With a root folder, file tools reach nothing outside of it, by whatever name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.places import text

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.conformance.places import Place

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root"), pytest.mark.needs("shared")]

#: Paths as a model may write them, all to what is outside of the root; {top} is above it.
OUTSIDE = {
    "above": "../secret.txt",
    "far above": "sub/../../secret.txt",
    "absolute": "{top}/secret.txt",
    "a sibling that begins alike": "{top}/app-evil/secret.txt",
    "a relative symlink": "out",
    "an absolute symlink": "absolute-out",
    "a symlink to a folder": "evil/secret.txt",
    "a symlink behind a symlink": "chain",
    "home": "~/secret.txt",
    "a link of proc": "/proc/self/root{top}/secret.txt",
}


@pytest.fixture
async def app(place: Place, open_beside: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that opens a place which is confined to one folder of this one."""
    await place.put("secret.txt", "needle of others\n")
    await place.put("app-evil/secret.txt", "needle of others\n")
    await place.put("app/a.txt", "needle\n")
    await place.put("app/sub/b.txt", "needle\n")
    links = {
        "out": "../secret.txt",
        "absolute-out": place.path("secret.txt"),
        "evil": "../app-evil",
        "chain": "sub/up",
        "sub/up": "../../secret.txt",
        "sub/inside": "../a.txt",
        "sub/absolute-inside": place.path("app/a.txt"),
        "magic": "/proc/self/root",
        "new-outside": "../new.txt",
    }
    for name, target in links.items():
        await place.symlink(target, f"app/{name}")

    def open_app(**options: Any) -> AbstractAsyncContextManager[Place]:
        opened: AbstractAsyncContextManager[Place] = open_beside(
            place, root=place.path("app"), **options
        )
        return opened

    return open_app


@pytest.mark.parametrize("outside", OUTSIDE.values(), ids=list(OUTSIDE))
async def test_what_is_outside_is_refused(
    place: Place, app: Callable[..., Any], outside: str
) -> None:
    """B07: a folder that begins as the root does was let in."""
    path = outside.format(top=place.cwd)
    async with app() as confined:
        told = [
            await confined.run("read", path=path),
            await confined.run("write", path=path, content="x"),
            await confined.run("edit", path=path, edits=[{"oldText": "needle", "newText": "x"}]),
            await confined.run("grep", pattern="needle", path=path),
            await confined.run("find", pattern="*", path=path),
            await confined.run("ls", path=path),
        ]
    assert [message.error_kind for message in told] == ["denied"] * 6, [text(m) for m in told]
    assert all(place.path("app") in text(message) for message in told)
    assert not any("needle" in text(message) for message in told)
    assert await place.get("secret.txt") == b"needle of others\n"
    assert await place.get("app-evil/secret.txt") == b"needle of others\n"


async def test_what_is_inside_is_as_without_a_root(place: Place, app: Callable[..., Any]) -> None:
    async with app() as confined:
        for path in ("a.txt", "sub/inside", "sub/absolute-inside", "sub/../a.txt", "./sub/./b.txt"):
            assert text(await confined.run("read", path=path)) == "needle"
        assert text(await confined.run("read", path=place.path("app/a.txt"))) == "needle"
        assert not (await confined.run("write", path="new/deep/c.txt", content="c")).is_error
        assert text(await confined.run("read", path="new/deep/c.txt")) == "c"
        edits = [{"oldText": "needle", "newText": "thread"}]
        assert not (await confined.run("edit", path="sub/absolute-inside", edits=edits)).is_error
        assert text(await confined.run("read", path="a.txt")) == "thread"
        missing = await confined.run("read", path="sub/b.text")
        assert missing.error_kind == "not_found"
        assert "b.txt" in text(missing)


async def test_nothing_is_made_outside(place: Place, app: Callable[..., Any]) -> None:
    async with app() as confined:
        for path in ("../new.txt", "new-outside", "evil/new.txt", "evil/deep/new.txt"):
            message = await confined.run("write", path=path, content="x")
            assert message.error_kind == "denied", (path, text(message))
    assert await place.names("") == ["app", "app-evil", "secret.txt"]
    assert await place.names("app-evil") == ["secret.txt"]


async def test_searches_and_listings_stay_inside(app: Callable[..., Any]) -> None:
    async with app() as confined:
        assert "of others" not in text(await confined.run("grep", pattern="needle"))
        found = text(await confined.run("find", pattern="**/*.txt")).splitlines()
        assert found == ["a.txt", "sub/b.txt"]
        listed = text(await confined.run("ls"))
        assert "evil@" in listed
        assert "app-evil/" not in listed
        assert not (await confined.run("ls", path=".")).is_error


async def test_commands_are_refused_unless_they_are_allowed(
    place: Place, app: Callable[..., Any]
) -> None:
    async with app() as confined:
        refused = await confined.run("bash", command="echo hello")
        assert refused.error_kind == "unsupported"
        assert "unconfined_commands" in text(refused)
    async with app(unconfined_commands=True) as confined:
        allowed = await confined.run("bash", command="echo hello")
        assert allowed.error_kind != "unsupported"


@pytest.mark.needs("shell")
async def test_kept_output_can_be_read(app: Callable[..., Any]) -> None:
    async with app(unconfined_commands=True) as confined:
        message = await confined.run("bash", command="seq 1 30000")
        path = message.details["kept_path"]
        assert text(await confined.run("read", path=path, limit=1)).startswith("1\n")
