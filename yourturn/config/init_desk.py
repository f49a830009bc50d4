"""`turn init`: creates a desk, or reports the existing one."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..client import Client
from ..core.errors import Precondition, StoreTrouble
from ..core.fields import project_key
from ..core.model import Who
from ..db import schema
from ..desk.desk import Desk
from . import FILE, FOLDER, identity, open_store


def init_desk(
    db: str | None, key: str | None, name: str | None, env: Mapping[str, str], upgrade: bool
) -> tuple[Client, dict[str, Any]]:
    key = project_key("key", key) if key else None
    address = db or env.get("YOURTURN_DB") or str(Path.cwd() / FOLDER / FILE)
    make_folder(address)
    store = open_store(address, create=True)
    try:
        before = schema.create(store, upgrade)
        with store.begin("init") as run:
            run(store.query["insert_workspace"], {"name": "default", "at": time.time_ns() // 1000})
        desk = Desk(store, Who("nobody", "viewer"))
        desk.who = identity(desk, None, env)
        client = Client(desk)
        keys = [project["key"] for project in client.projects()]
        wanted = key or (None if keys else _folder_key())
        if wanted and wanted not in keys:
            with suppress(Precondition):  # another process was faster
                client.create_project(wanted, name or Path.cwd().name or wanted)
        client = Client(desk, wanted or keys[0])
    except BaseException:
        store.close()
        raise
    return client, {"db": store.url, "project": client.project, "schema": schema.VERSION, "created": before == 0}


def make_folder(address: str) -> None:
    """Create the folder of a database file."""
    if "://" not in address or address.startswith("sqlite:///"):
        folder = Path(address.removeprefix("sqlite:///")).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if folder.name == FOLDER and not (folder / ".gitignore").exists():
                (folder / ".gitignore").write_text("*\n")
        except OSError as error:
            raise StoreTrouble(f"{folder} cannot be created", reason=error.strerror or str(error)) from None


def _folder_key() -> str:
    """The key of a project that is named after its folder."""
    word = re.sub(r"[^A-Z0-9]", "", Path.cwd().name.upper()).lstrip("0123456789")
    return word[:8] or "PROJ"
