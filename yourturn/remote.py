"""The desk over HTTP: the same methods, values and errors, spoken to a server instead of a database.

A method is said by its name (`POST /api/desk/{method}`), so there is nothing here to keep up with the client. What the server
does not do for us is waiting: we look, ask it to tell us when something changes, and look again.

A request that was lost on the way is sent again with the same idempotency key, so nothing happens twice.
"""

from __future__ import annotations

import inspect
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from .client import Client, Named
from .core.errors import NotAllowed, StoreTrouble, TooMany, Usage, YourturnError, every_error
from .core.model import Who
from .desk import Desk

#: Seconds that the server lets us wait at a time, and that an answer may take.
SLICE, PATIENCE = 10.0, 60.0
_ERRORS = {error.code: error for error in every_error()}


class Line:
    """Requests to one server, on a connection for each thread."""

    def __init__(self, url: str, token: str, agent: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Usage(f"{url[:80]!a} is no address of a server", hint="Like: YOURTURN_URL=https://turn.example.org")
        self.url = url.rstrip("/")
        self.token = token
        self.agent = agent
        self._parts = parts
        self._local = threading.local()
        self._all: list[HTTPConnection] = []

    def _connection(self) -> HTTPConnection:
        found = getattr(self._local, "connection", None)
        if found is None or getattr(self._local, "pid", 0) != os.getpid():
            make = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            found = make(str(self._parts.hostname), self._parts.port, timeout=PATIENCE)
            self._local.connection, self._local.pid = found, os.getpid()
            self._all.append(found)
        return cast(HTTPConnection, found)

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        for name, value in (("Authorization", self.token and f"Bearer {self.token}"), ("Yourturn-Agent", self.agent)):
            if value:
                headers[name] = value
        if key is not None:
            headers["Idempotency-Key"] = key
        data = None if body is None else json.dumps(body).encode()
        for attempt in (1, 2, 3):
            connection = self._connection()
            try:
                connection.request(method, self._parts.path.rstrip("/") + path, data, headers)
                answer = connection.getresponse()
                return _value(answer.status, answer.read(), answer.headers.get("retry-after", ""))
            except (HTTPException, OSError) as trouble:
                connection.close()
                again = method == "GET" or key is not None or isinstance(trouble, ConnectionRefusedError)
                if attempt == 3 or not again:
                    lost = "" if again else " Whether it was done cannot be known: look before you say it again."
                    strange = "certificate verify failed" in str(trouble)
                    trust = "SSL_CERT_FILE names the certificate to trust."
                    hint = trust if strange else f"Is it running? See YOURTURN_URL.{lost}"
                    why = getattr(trouble, "strerror", None) or str(trouble) or type(trouble).__name__
                    raise StoreTrouble(f"The server at {self.url} cannot be reached", reason=why, hint=hint) from None
                time.sleep(0.05 * 4**attempt)
        raise AssertionError

    def close(self) -> None:
        while self._all:
            self._all.pop().close()
        self._local = threading.local()


def _value(status: int, raw: bytes, retry: str) -> Any:
    try:
        found = json.loads(raw) if raw else None
    except ValueError:
        found = None
    if status < 400 and (found is not None or not raw):
        return found
    said = found.get("error") if isinstance(found, dict) else None
    if not isinstance(said, dict):
        raise StoreTrouble(f"The server answered {status}, and not in our words", hint="Is there a Yourturn at YOURTURN_URL?")
    error = _ERRORS.get(said.get("code", ""), YourturnError)(str(said.get("message")), hint=str(said.get("hint") or ""))
    if isinstance(error, TooMany) and retry.isdigit():
        error.retry_after = int(retry)
    raise error


class Faraway:
    """What is left of a desk that is elsewhere: who we are to it, where its log ends, and waiting."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._who: Who | None = None
        self._heard = ""

    @property
    def who(self) -> Who:
        if self._who is None:
            found = self.line.call("GET", "/api/me")
            scopes = found.get("scopes")
            self._who = Who(found["actor"], found["role"], scopes=None if scopes is None else frozenset(scopes))
        return self._who

    def cursor(self) -> str:
        return str(self.line.call("POST", "/api/desk/desk_cursor", {})["result"])

    def wait(self, seconds: float) -> bool:
        """Until something changes, at most so long."""
        ends = time.monotonic() + seconds
        while True:
            left = min(SLICE, max(0.0, ends - time.monotonic()))
            query = {"seconds": f"{left:.3f}"} | ({"after": self._heard} if self._heard else {})
            heard = self.line.call("GET", f"/api/changes?{urlencode(query)}")["cursor"]
            before, self._heard = self._heard, heard
            if before and heard != before:
                return True
            if time.monotonic() >= ends:
                return False

    def close(self) -> None:
        self.line.close()

    def __getattr__(self, name: str) -> Any:
        raise Usage("That needs the database itself", reason="this desk is a server", hint="Run it there, or give --db.")


class Remote(Client):
    """A client whose desk is a server."""

    def __init__(self, url: str, token: str = "", *, project: str | None = None, agent: str = "") -> None:
        self._line = Line(url, token, agent)
        super().__init__(cast(Desk, Faraway(self._line)), project)

    @property
    def url(self) -> str:
        return self._line.url

    @property
    def project(self) -> str:
        if self._project is not None:
            return self._project
        if self._first is None:
            self._first = str(self._say_by_name("projects", (), {})[0]["key"])
        return self._first

    def _say_by_name(self, method: str, args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
        body: dict[str, Any] = {"args": _plain(list(args)), "fields": _plain(fields)}
        if self._project is not None:
            body["project"] = self._project
        if self._version is not None:
            body["version"] = self._version
        key = fields.get("key")
        if key is None and "key" in inspect.signature(getattr(Client, method)).parameters and method != "create_project":
            key = f"auto-{os.urandom(16).hex()}"
        return self._line.call("POST", f"/api/desk/{quote(method)}", body, key)["result"]

    # --- who --------------------------------------------------------------------------------------------------------

    def as_(self, who: Who) -> Client:
        """The credential decides. A person may speak as an agent, which is less."""
        if who.name.startswith("agent:") and self.who.is_person:
            agent = who.name.partition(":")[2]
        elif who.name == self.who.name:
            agent = self._line.agent
        else:
            raise NotAllowed(f"{self.who.name} cannot act as {who.name}", reason="the credential decides who you are")
        other = Remote(self._line.url, self._line.token, project=self._project, agent=agent)
        other._beside = self._beside
        return other

    def do(self, verb: str, /, *, key: str | None = None, look: Any = None, **args: Any) -> Any:
        raise Usage("A server is spoken to by methods", hint="Use the method of that verb.")

    # --- waiting ----------------------------------------------------------------------------------------------------

    def ask(
        self, task: Named, text: str, kind: str = "input", options: Any = (), wait: float | None = None, **fields: Any
    ) -> Any:
        found = self._say_by_name("ask", (task, text, kind, list(options)), fields)
        return self.wait_for(found, wait) if wait else found

    def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        ends = time.monotonic() + seconds
        while True:
            found: dict[str, Any] = self._say_by_name("wait_for", (question, 0), {})
            left = ends - time.monotonic()
            if found["status"] != "pending" or not left > 0:
                return found
            self.desk.wait(min(left, SLICE))

    def watch(self, after: str | None = None, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        cursor = after if after is not None else self.desk.cursor()
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            page = self._say_by_name("events", (cursor,), {})
            cursor = page["cursor"]
            yield from page["events"]
            if page["events"]:
                continue
            left = SLICE if ends is None else ends - time.monotonic()
            if left <= 0:
                return
            self._line.call("GET", f"/api/changes?{urlencode({'after': cursor, 'seconds': f'{min(SLICE, left):.3f}'})}")

    def sleep_until_due(self, seconds: float) -> None:
        self.desk.wait(min(seconds, SLICE))

    # --- what is only there -----------------------------------------------------------------------------------------

    def close(self, task: Named | None = None, reason: str = "", *, key: str | None = None) -> dict[str, Any] | None:
        if task is None:
            self._shut()
            return None
        found: dict[str, Any] = self._say_by_name("close", (task, reason), {"key": key} if key else {})
        return found


def _plain(value: Any) -> Any:
    """What JSON can carry."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, "__next__") and not isinstance(value, str)):
        return [_plain(one) for one in value]
    return value


def _by_name(method: str) -> Callable[..., Any]:
    def say(self: Remote, *args: Any, **fields: Any) -> Any:
        return self._say_by_name(method, args, fields)

    say.__name__, say.__doc__ = method, getattr(Client, method).__doc__
    return say


def _elsewhere(method: str) -> Callable[..., Any]:
    def refuse(self: Remote, *args: Any, **fields: Any) -> Any:
        raise Usage(
            f"{method.rstrip('_')} needs the database itself", reason="this desk is a server", hint="Run it there, or give --db."
        )

    return refuse


#: What speaks of files and connections, and is said where they are.
_ELSEWHERE = ("export", "import_", "backup", "login", "use_link", "whose_link", "logout")
for _name in dir(Client):
    if (
        _name.startswith("_")
        or _name in vars(Remote)
        or not callable(getattr(Client, _name))
        or _name in ("at_version", "follow")
    ):
        continue
    setattr(Remote, _name, _elsewhere(_name) if _name in _ELSEWHERE else _by_name(_name))


def reach(url: str, token: str, *, as_: str | None, project: str | None, agent: str) -> Client:
    """The desk at a server's address, if it knows us."""
    found = Remote(url, token, project=project, agent=agent)
    who = found.who
    if as_ is not None and (as_ if ":" in as_ else f"human:{as_}") != who.name:
        found.close()
        raise NotAllowed(f"{who.name} cannot act as {as_[:80]}", reason="the credential decides who you are")
    return found
