"""Empty desks for tests. Creating the tables costs more than most tests, so they are created once and reused.

On SQLite a new desk is a copy of a prepared file. On PostgreSQL it is a schema that an earlier test has returned: its rows are
replaced by those of a new desk. A schema that changed in any other way, or that still has a connection, is not reused.
"""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from yourturn.config import init

#: What a schema consists of. A row of the catalogue that is written anew gets another xmin.
_SHAPE = """
WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = %(name)s),
     of AS (SELECT oid, xmin FROM pg_class WHERE relnamespace = (SELECT oid FROM here))
SELECT kind, count(*), sum(CAST(CAST(x AS TEXT) AS BIGINT)) FROM (
    SELECT 'relation' AS kind, xmin AS x FROM of
    UNION ALL SELECT 'column', a.xmin FROM pg_attribute a JOIN of ON a.attrelid = of.oid
    UNION ALL SELECT 'index', i.xmin FROM pg_index i JOIN of ON i.indrelid = of.oid
    UNION ALL SELECT 'constraint', c.xmin FROM pg_constraint c WHERE c.connamespace = (SELECT oid FROM here)
    UNION ALL SELECT 'trigger', t.xmin FROM pg_trigger t JOIN of ON t.tgrelid = of.oid
    UNION ALL SELECT 'function', p.xmin FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM here)
) everything GROUP BY kind ORDER BY kind
"""
_BUSY = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %(name)s"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = %(name)s"
_NUMBERS = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = %(name)s"


def found(address: str) -> str:
    """An empty desk, project PROJ."""
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    return address


class Files:
    """Desks on SQLite."""

    def __init__(self, folder: Path) -> None:
        self._model = Path(found(str(folder / "yourturn.db")))
        assert [file.name for file in folder.iterdir()] == [self._model.name], "a closed desk is one file"

    def copy(self, path: Path) -> str:
        path.parent.mkdir(parents=True)
        return str(shutil.copyfile(self._model, path))


class Schemas:
    """Schemas of one PostgreSQL."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._idle: list[Desk] = []
        self._connect()

    def _connect(self) -> None:
        import psycopg

        self._db = psycopg.connect(self.uri, autocommit=True)
        self._db.execute("SET client_min_messages = warning")

    def new(self) -> tuple[str, str]:
        """An empty schema: its name, and its address."""
        name = f"t_{uuid.uuid4().hex}"
        self.say(f"CREATE SCHEMA {name}")
        return name, f"{self.uri}&application_name={name}&options={quote(f'-csearch_path={name}')}"

    def drop(self, name: str) -> None:
        self.say(f"DROP SCHEMA {name} CASCADE")

    def desk(self) -> Desk:
        for at, desk in enumerate(self._idle):
            if not self.ask(_BUSY, desk.name)[0][0]:
                del self._idle[at]
                if desk.emptied():
                    return desk
                self.drop(desk.name)
                break
        return Desk(self)

    def back(self, desk: Desk) -> None:
        self._idle.append(desk)

    def ask(self, text: str, name: str) -> list[Any]:
        found: list[Any] = self.say(text, {"name": name}).fetchall()
        return found

    def say(self, text: str, args: Any = None) -> Any:
        """Once more, if a test has ended all connections."""
        import psycopg

        try:
            return self._db.execute(text, args)
        except psycopg.OperationalError:
            self._connect()
            return self._db.execute(text, args)

    def close(self) -> None:
        self._db.close()


class Desk:
    """A desk in a schema."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.name, self.address = schemas.new()
        found(self.address)
        self._shape = schemas.ask(_SHAPE, self.name)
        self._anew = self._renewal()

    def emptied(self) -> bool:
        """Replaces all rows by those of a new desk; False if more than rows has changed."""
        if self._schemas.ask(_SHAPE, self.name) != self._shape:
            return False
        self._schemas.say(self._anew)
        return True

    def _renewal(self) -> str:
        ask, name = self._schemas.ask, self.name
        lines = ["SET session_replication_role = replica"]  # no trigger, no reference
        for (table,) in ask(_TABLES, name):
            ((rows,),) = ask(f"SELECT coalesce(json_agg(t), '[]') FROM {name}.{table} t", name)
            text = json.dumps(rows).replace("'", "''")
            lines.append(f"DELETE FROM {name}.{table}")
            if rows:
                as_rows = f"json_populate_recordset(NULL::{name}.{table}, '{text}')"
                lines.append(f"INSERT INTO {name}.{table} SELECT * FROM {as_rows}")
        for number, last in ask(_NUMBERS, name):
            lines.append(f"SELECT setval('{name}.{number}', {last or 1}, {last is not None})")
        return "; ".join([*lines, "SET session_replication_role = origin"])
