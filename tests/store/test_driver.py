"""psycopg is imported lightly, and nobody else notices."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import textwrap
import threading

import psycopg
import pytest

from yourturn.config import connect
from yourturn.core.errors import StoreTrouble
from yourturn.db import line

HEAVY = ("importlib.metadata", "ctypes", "ctypes.util", "email.message", "asyncio", "ssl", "logging", "psycopg.connection")


def said(script: str, *args: str) -> object:
    """What a fresh process prints, as JSON."""
    return json.loads(subprocess.check_output([sys.executable, "-c", textwrap.dedent(script), *args], timeout=60))


def test_what_stands_in_is_gone_afterwards():
    script = f"""
        import json, sys
        import yourturn.db.postgres, psycopg, psycopg_binary, psycopg.pq.misc
        light = [name for name in {HEAVY} if name in sys.modules]
        looked_up = psycopg.pq.misc.ctypes.util.find_library.__module__
        import asyncio, ctypes.util, gc, importlib, importlib.metadata, logging.handlers, ssl
        real = [module.__file__ for module in (asyncio, ctypes.util, importlib.metadata, logging, ssl)]
        version = importlib.metadata.distribution("psycopg").version
        print(json.dumps([light, looked_up, real, [version, psycopg.__version__, psycopg_binary.__version__], gc.isenabled()]))
    """
    light, looked_up, real, versions, looking = said(script)
    assert light == [], "none of it was needed"
    assert looked_up == "ctypes.util"
    ends = ("asyncio/__init__.py", "ctypes/util.py", "metadata/__init__.py", "logging/__init__.py", "ssl.py")
    assert all(path.endswith(end) for path, end in zip(real, ends, strict=True)), real
    assert len(set(versions)) == 1
    assert looking


@pytest.mark.parametrize("first", ["yourturn.db.postgres", "psycopg"])
def test_psycopg_is_whole_for_whoever_uses_it(new_db, first):
    """However it was imported first: connections that wait and those that do not, adapters, and all its names."""
    script = """
        import sys, json
        __import__(sys.argv[2])
        import yourturn.db.postgres
        from psycopg import *
        import asyncio, datetime, psycopg, psycopg.errors, psycopg.types.json

        async def later():
            async with await psycopg.AsyncConnection.connect(sys.argv[1]) as db:
                return (await (await db.execute("SELECT current_date, ARRAY[1, 2]")).fetchone())[0]

        async def cancelled():
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return True

        with connect(sys.argv[1]) as db:
            now = db.execute("SELECT %s", [psycopg.types.json.Jsonb({"a": 1})]).fetchone()[0]
        kind = type(psycopg).__name__
        names = {"connect", "AsyncConnection", "errors", "sql", "rows"} <= set(dir(psycopg))
        ours = psycopg.errors.CancelledError is asyncio.CancelledError in psycopg.errors._NO_TRACEBACK
        same = psycopg.Error is psycopg.errors.Error is yourturn.db.postgres.pg.Error
        today = asyncio.run(later()) == datetime.date.today()
        print(json.dumps([kind, now, names, ours, same, asyncio.run(cancelled()), today]))
    """
    assert said(script, new_db("postgres"), first) == ["module", {"a": 1}, True, True, True, True, True]


def test_names_that_are_not_there():
    script = """
        import json, yourturn.db.postgres, psycopg
        before = [hasattr(psycopg, "__wrapped__"), type(psycopg).__name__, hasattr(psycopg, "rows"), type(psycopg).__name__]
        print(json.dumps([before, hasattr(psycopg, "nonsense"), type(psycopg).__name__]))
    """
    assert said(script) == [[False, "_Package", True, "_Package"], False, "module"]


def test_many_threads_ask_for_it_at_once():
    script = """
        import json, threading, yourturn.db.postgres, psycopg
        from concurrent.futures import ThreadPoolExecutor
        barrier = threading.Barrier(8)

        def ask(number):
            barrier.wait()
            return psycopg.connect.__name__ if number % 2 else psycopg.AsyncServerCursor.__name__

        with ThreadPoolExecutor(8) as pool:
            print(json.dumps(sorted(set(pool.map(ask, range(8))))))
    """
    assert said(script) == ["AsyncServerCursor", "connect"]


def test_another_thread_imports_meanwhile():
    """It gets the real modules, also while others stand in for them."""
    script = """
        import json, sys, threading
        found = []

        def other():
            import asyncio, logging.handlers
            found.extend([asyncio.CancelledError.__module__, logging.handlers.__name__])

        def hook(event, args):
            if event == "import" and args[0] == "psycopg._encodings" and not found:
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()

        sys.addaudithook(hook)
        import yourturn.db.postgres
        print(json.dumps(found))
    """
    assert said(script) == ["asyncio.exceptions", "logging.handlers"]


# --- a line ---------------------------------------------------------------------------------------------------------------

VALUES = """
    SELECT CAST(1 AS SMALLINT), CAST(-2 AS INTEGER), CAST(9007199254740993 AS BIGINT), CAST(1.5 AS REAL),
    CAST('-inf' AS DOUBLE PRECISION), true, false, NULL, CAST(NULL AS BIGINT), 'Zoë ''☃''', CAST('name' AS NAME), '',
    CAST('123' AS xid8), CAST('a' AS VARCHAR)
"""


def test_values_are_the_same_however_they_are_made(new_db, monkeypatch):
    address = new_db("postgres")
    db = line.connect(address, 5)
    result = db.execute(f"{VALUES} UNION ALL {VALUES}")
    monkeypatch.setattr(line.Loader, "left", 100)
    loader = line.Loader()
    plain = [loader.rows(result) for _ in range(3)]
    assert line.Loader.left == 16, "three times 28"
    fast = loader.rows(result)
    assert line.Loader.left == 0
    with psycopg.connect(address) as whole:
        expected = whole.execute(f"{VALUES} UNION ALL {VALUES}").fetchall()
    assert fast == expected and plain == [expected] * 3
    assert [list(map(type, row)) for row in fast] == [list(map(type, row)) for row in plain[0]]
    db.close()


def test_a_line_hears_and_says_nothing_by_itself(new_db, capfd):
    address = new_db("postgres")
    one, other = line.connect(address, 5), line.connect(address, 5)
    one.execute("LISTEN here")
    assert not one.heard(0)
    other.execute("NOTIFY here; NOTIFY here, 'again'; DO $$ BEGIN RAISE WARNING 'careful'; END $$")
    assert one.heard(5) and not one.heard(0), "all that has come is one thing"
    other.execute("NOTIFY here")
    one.execute("SELECT 1")
    assert one.heard(0), "it came with the answer"
    with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
        one.execute("SELECT 1; SELECT 1 / 0")
    assert capfd.readouterr() == ("", "")
    one.execute("SELECT 1")
    one.close()
    assert one.closed and not other.closed
    other.close()


def test_an_address_with_quotes_and_a_line_that_is_cut(new_db):
    one = line.connect(f"{new_db('postgres')}&application_name=it's%20\\mine", 5)
    (name,) = line.Loader().rows(one.execute("SELECT current_setting('application_name')"))[0]
    assert name == "it's \\mine"
    with pytest.raises(psycopg.OperationalError):
        one.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert one.readable()
    with pytest.raises(psycopg.OperationalError):
        one.execute("SELECT 1")
    assert one.closed


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(StoreTrouble, match="does not answer") as failed:
        connect(f"postgresql:///x?host={tmp_path}", as_="human:ana", project="PROJ", env={})
    assert "connection failed" in str(failed.value.reason) or "connection is bad" in str(failed.value.reason)


def test_a_server_that_is_silent():
    """If there is another address behind it, that one is tried too."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(psycopg.errors.ConnectionTimeout, match="timeout expired"):
            line.connect(f"postgresql://127.0.0.1:{port}/x", 1)
        with pytest.raises(psycopg.OperationalError, match="All failures were"):
            line.connect(f"postgresql://127.0.0.1:{port},127.0.0.1:1/x", 2)


WAYS = {
    "execute": lambda db, words: db.execute(words),
    "one": lambda db, words: db.pgconn.exec_(words.encode()),
    "pipe": lambda db, words: db.pipe([(words.encode(), None), (b"SELECT 1", None)]),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_waits_for_the_server_holds_up_no_other_thread(new_db, way):
    """The lock that one waits for is held by another thread of this process: were it held up, nobody would ever go on."""
    address = new_db("postgres")
    one, other = line.connect(address, 5), line.connect(address, 5)
    one.execute("SELECT pg_advisory_lock(7)")
    other.execute("SET statement_timeout = '20s'")
    done = []
    thread = threading.Thread(target=lambda: done.append(WAYS[way](other, "SELECT pg_advisory_lock(7)")))
    thread.start()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted"
    with psycopg.connect(address, autocommit=True) as third:
        while thread.is_alive() and third.execute(waiting).fetchone() == (0,):
            pass
    assert thread.is_alive(), "it waited until it gave up, and so did everybody"
    one.close()
    thread.join(30)
    assert done
    other.close()
