"""Configuration: the desk's address and the actor. Options override the environment, files and defaults."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from typing import Any

from ..client import Client
from ..core.errors import Invalid, NoDesk, NotAllowed, Usage
from ..core.fields import NAME
from ..core.model import Who
from ..db import schema
from ..db.backend import Store
from ..desk.desk import Desk
from ..desk.lookups import Clock

FOLDER = ".yourturn"
FILE = "yourturn.db"


def locate(db: str | None, env: Mapping[str, str]) -> str:
    """--db, YOURTURN_DB, or the nearest .yourturn/yourturn.db upward."""
    address = db or env.get("YOURTURN_DB")
    if address:
        return address
    folder = os.getcwd()  # noqa: PTH109
    while True:
        path = os.path.join(folder, FOLDER, FILE)  # noqa: PTH118
        if os.path.exists(path):  # noqa: PTH110
            return path
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            raise NoDesk("There is no desk here or in any folder above", hint="Make one with: turn init")
        folder = above


def where(db: str | None, env: Mapping[str, str]) -> str:
    """The address of a database or a server."""
    return locate(db or env.get("YOURTURN_URL"), env)


def is_server(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def file() -> dict[str, Any]:
    """The nearest .yourturn/config.toml upward; empty when there is none."""
    import tomllib  # with pathlib 6 ms, which most commands do not need
    from pathlib import Path

    for folder in (Path.cwd(), *Path.cwd().parents):
        path = folder / FOLDER / "config.toml"
        if path.is_file():
            try:
                return tomllib.loads(path.read_text(encoding="utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
                hint = 'It is TOML, like: [agents.coder], and in the line below: adapter = "claude"'
                raise Invalid(f"{path} cannot be read", reason=str(error), hint=hint) from None
    return {}


def open_store(address: str, create: bool = False) -> Store:
    """A path, sqlite:///path, or postgresql://…"""
    store = _store(address, create)
    fault = os.environ.get("YOURTURN_FAULT")
    if not fault:
        return store
    from ..db.failpoints import with_failpoints  # for tests: production does not load it

    return with_failpoints(store, fault)


def replied() -> None:
    """The last failpoint of a change: the caller has the reply."""
    if os.environ.get("YOURTURN_FAULT"):
        from ..db.failpoints import replied  # for tests

        replied()


def _store(address: str, create: bool) -> Store:
    if address.startswith(("postgresql://", "postgres://")):
        from ..db.postgres import PostgresStore  # psycopg, optional: 90 ms

        return PostgresStore(address, create=create)
    if is_server(address):
        raise Usage(f"{address[:80]!a} is a server", reason="this opens databases only", hint="Run it where the database is.")
    if "://" in address and not address.startswith("sqlite:///"):
        raise Usage(f"Invalid database address {address[:80]!a}", hint="Give a path, sqlite:///path or postgresql://…")
    from ..db.sqlite import SqliteStore  # 6 ms that commands on PostgreSQL do not need

    return SqliteStore(address.removeprefix("sqlite:///"), create=create, busy=_busy(os.environ))


def _busy(env: Mapping[str, str]) -> float:
    """Seconds to wait for another writer."""
    try:
        return min(600.0, max(0.0, float(env.get("YOURTURN_BUSY", "5"))))
    except ValueError:
        return 5.0


def person(env: Mapping[str, str]) -> str:
    name = env.get("USER") or env.get("LOGNAME") or env.get("USERNAME")
    if not name:
        try:
            name = getpass.getuser()
        except (OSError, KeyError):
            name = "somebody"
    return re.sub(r"[^\w.@+-]", "-", name).lstrip(".@+-") or "somebody"


def identity(desk: Desk, as_: str | None, env: Mapping[str, str]) -> Who:
    """The actor. The credential decides: a process with an agent's token or name is an agent."""
    token = env.get("YOURTURN_TOKEN")
    agent = env.get("YOURTURN_AGENT")
    if agent and (not NAME.fullmatch(agent) or ":" in agent):
        raise NotAllowed("YOURTURN_AGENT is not a name", hint="Letters, digits and . _ - @ + / are fine.")
    if token or agent:
        who = desk.credentials.identify(token) if token else Who(f"agent:{agent}", "agent")
        if agent and who.is_person:  # a worker's process is an agent, also with a person's token
            who = who._replace(name=f"human:{agent}").as_agent()
        if as_ is not None and (as_ != who.name or not who.is_person):
            raise NotAllowed(f"{who.name} cannot act as {as_}", reason="the credential decides who you are")
        return who._replace(direct=True)
    if as_ is None:
        as_ = f"human:{person(env)}"
    if ":" not in as_:
        as_ = f"human:{as_}"
    kind, _, name = as_.partition(":")
    if kind not in ("human", "agent") or not NAME.fullmatch(name) or ":" in name:
        raise Usage(f"Invalid actor {as_[:80]!a}", hint="Use --as human:ana or --as agent:coder.")
    if kind == "agent":
        return Who(as_, "agent", direct=True)
    role = desk.credentials.role_of(name) or "admin"  # a direct user of the database is an admin, unless a role is set
    return Who(as_, role, direct=True)


def connect(
    url: str | None = None,
    *,
    as_: str | None = None,
    project: str | None = None,
    clock: Clock | None = None,
    env: Mapping[str, str] | None = None,
) -> Client:
    """Open a desk: a database, or a server at http…

    Without an address: YOURTURN_URL, YOURTURN_DB, or the nearest .yourturn/yourturn.db upward.
    """
    env = os.environ if env is None else env
    address = where(url, env)
    if is_server(address):
        from ..client.remote import reach  # 28 ms that local desks do not need

        default = project or env.get("YOURTURN_PROJECT") or None
        return reach(address, env.get("YOURTURN_TOKEN", ""), as_=as_, project=default, agent=env.get("YOURTURN_AGENT", ""))
    store = open_store(address)
    try:
        schema.check(store)
        desk = Desk(store, Who("nobody", "viewer"), clock=clock)
        desk.who = identity(desk, as_, env)
    except BaseException:
        store.close()
        raise
    return Client(desk, project or env.get("YOURTURN_PROJECT") or None)


def restore(
    file: str, into: str | None = None, *, force: bool = False, as_: str | None = None, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Replace a desk by a backup or an export, or create one from it. Claims and permissions in it are void."""
    from ..data import restore as module  # 20 ms; imports this module

    return module.restore(file, into, force=force, as_=as_, env=os.environ if env is None else env)


def init(
    db: str | None, key: str | None, name: str | None, env: Mapping[str, str], upgrade: bool = False
) -> tuple[Client, dict[str, Any]]:
    """Create a desk: tables, the workspace `default`, one project. A second call changes nothing."""
    from .init_desk import init_desk  # imports this module

    return init_desk(db, key, name, env, upgrade)
