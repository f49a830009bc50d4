"""The client of a server: the same methods, values and errors over HTTP.

Each method is one request, `POST /api/desk/{method}` (remote_methods.py). To wait, the client reads, long-polls for a change,
and reads again.

A request that was lost, or refused for the moment by a proxy or the server (502, 503, 504, 429), is sent again: reads as they
are, changes with the same idempotency key, so nothing happens twice. The client adds a key to every change.
"""

from __future__ import annotations

import json
import os
import selectors
import threading
import time
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode, urlsplit

from ..core.errors import Busy, MaybeDone, NotAllowed, NotKnown, StoreTrouble, TooMany, Usage, YourturnError, every_error
from ..core.model import Who
from ..desk.desk import Desk
from . import Client, Named
from .admin import new_secret
from .refs import key_name
from .remote_methods import RemoteMethods

#: Longest wait of one long poll, and of one response (s).
POLL, TIMEOUT = 10.0, 60.0
#: Longest outage of a server that has answered before, and longest pause before a retry (s).
OUTAGE, PAUSE = 30.0, 5.0
_ERRORS = {error.code: error for error in every_error()}


class Attempt(NamedTuple):
    """The result of sending a request once."""

    value: Any
    error: YourturnError | None = None
    sent: bool = True  #: the whole request was written
    is_temporary: bool = False  #: a retry may succeed
    retry_after: float = 0.0  #: seconds, from the server


class HttpTransport:
    """Requests to one server, on a connection for each thread."""

    def __init__(self, url: str, token: str, agent: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Usage(f"Invalid server address {url[:80]!a}", hint="Like: YOURTURN_URL=https://turn.example.org")
        self.url = url.rstrip("/")
        self.token = token
        self.agent = agent
        self.since: float | None = None  #: when the server answered first
        self._parts = parts
        self._local = threading.local()
        self._all: list[HTTPConnection] = []

    def _connection(self) -> HTTPConnection:
        connection = getattr(self._local, "connection", None)
        if connection is None or getattr(self._local, "pid", 0) != os.getpid():
            make = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            connection = make(str(self._parts.hostname), self._parts.port, timeout=TIMEOUT)
            self._local.connection, self._local.pid = connection, os.getpid()
            self._all.append(connection)
        if connection.sock is not None and _readable(connection.sock):  # between requests, readable means closed
            connection.close()
        return cast(HTTPConnection, connection)

    def call(self, method: str, body: dict[str, Any], key: str | None = None) -> Any:
        """Call a method of the client by its name."""
        return self.request("POST", f"/api/desk/{quote(method)}", body, key, method)["result"]

    def request(self, verb: str, path: str, body: Any = None, key: str | None = None, method: str = "") -> Any:
        """Send a request until it is answered: at least three times, and as long as the server had been reachable, at most
        OUTAGE. A change that was sent without an idempotency key is not sent again."""
        data = None if body is None else json.dumps(body).encode()
        maybe_done, tries, began = False, 0, time.monotonic()
        patience = 0.0 if self.since is None else min(OUTAGE, began - self.since)
        while True:
            tries += 1
            attempt = self._try(verb, path, data)
            if attempt.error is None:
                self.since = self.since or began
                return attempt.value
            maybe_done = maybe_done or (attempt.sent and attempt.is_temporary and not isinstance(attempt.error, TooMany))
            pause = max(min(2.0, 0.05 * 4**tries), attempt.retry_after)
            repeatable = verb == "GET" or _is_repeatable(method)
            is_over = tries >= 3 and time.monotonic() - began + pause > patience
            if not attempt.is_temporary or is_over or pause > PAUSE or (attempt.sent and not repeatable and key is None):
                break
            time.sleep(pause)
        revoked = isinstance(attempt.error, NotKnown)  # a retry of revoking the own token is refused like this
        if repeatable or not maybe_done or not (attempt.is_temporary or revoked):
            raise attempt.error
        raise _maybe_done(attempt.error, key)

    def _try(self, verb: str, path: str, data: bytes | None) -> Attempt:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        for name, value in (("Authorization", self.token and f"Bearer {self.token}"), ("Yourturn-Agent", self.agent)):
            if value:
                headers[name] = value
        connection, sent = self._connection(), False
        try:
            connection.request(verb, self._parts.path.rstrip("/") + path, data, headers)
            sent = True
            response = connection.getresponse()
            return _attempt(response.status, response.read(), response.headers.get("retry-after", ""))
        except (HTTPException, OSError) as error:
            connection.close()
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            untrusted = "certificate verify failed" in str(error)
            hint = "SSL_CERT_FILE names the certificate to trust." if untrusted else "Is it running? See YOURTURN_URL."
            trouble = StoreTrouble(f"The server at {self.url} cannot be reached", reason=why, hint=hint)
            return Attempt(None, trouble, sent, is_temporary=True)

    def close(self) -> None:
        while self._all:
            self._all.pop().close()
        self._local = threading.local()


def _readable(sock: Any) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _is_repeatable(method: str) -> bool:
    """True if the method only reads, or changes nothing more the second time."""
    from ..core import permissions

    return bool(method) and (permissions.reads(method) or method in permissions.SAME_TWICE)


def _maybe_done(error: YourturnError, key: str | None) -> MaybeDone:
    """The error for a change that was sent without a response."""
    then = f"Repeat it with --idempotency-key {key}: it is done once." if key else "Check before you repeat it."
    maybe = MaybeDone(error.message, reason=error.reason, hint=f"It may have been done. {then}")
    maybe.key = key or ""
    return maybe


def _attempt(status: int, raw: bytes, retry: str) -> Attempt:
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = None
    if status < 400 and (body is not None or not raw):
        return Attempt(body)
    fields = body.get("error") if isinstance(body, dict) else None
    seconds = int(retry) if retry.isdigit() else 0
    error: YourturnError
    if not isinstance(fields, dict):
        kind = TooMany if status == TooMany.http_status else StoreTrouble
        error = kind(f"Not a Yourturn server (HTTP {status})", hint="Is there a Yourturn at YOURTURN_URL?")
        is_temporary = status >= 500 or kind is TooMany
    else:
        error = _ERRORS.get(fields.get("code", ""), YourturnError)(str(fields.get("message")), hint=str(fields.get("hint") or ""))
        is_temporary = type(error) in (StoreTrouble, Busy, TooMany)
    if isinstance(error, TooMany) and seconds:
        error.retry_after = seconds
    return Attempt(None, error, is_temporary=is_temporary, retry_after=seconds)


class RemoteDesk:
    """The parts of a desk that a remote client needs: the actor, the end of the log, and waiting."""

    def __init__(self, transport: HttpTransport) -> None:
        self.transport = transport
        self._who: Who | None = None
        self._cursor = ""

    @property
    def who(self) -> Who:
        if self._who is None:
            reply = self.transport.request("GET", "/api/me")
            scopes = reply.get("scopes")
            self._who = Who(reply["actor"], reply["role"], scopes=None if scopes is None else frozenset(scopes))
        return self._who

    def cursor(self) -> str:
        return str(self.transport.call("desk_cursor", {}))

    def wait(self, seconds: float) -> bool:
        """Wait for a change, at most so long. True if there was one."""
        end = time.monotonic() + seconds
        while True:
            left = min(POLL, max(0.0, end - time.monotonic()))
            query = {"seconds": f"{left:.3f}"} | ({"after": self._cursor} if self._cursor else {})
            cursor = self.transport.request("GET", f"/api/changes?{urlencode(query)}")["cursor"]
            before, self._cursor = self._cursor, cursor
            if before and cursor != before:
                return True
            if time.monotonic() >= end:
                return False

    def close(self) -> None:
        self.transport.close()

    def __getattr__(self, name: str) -> Any:
        raise Usage("This needs the database itself", reason="this desk is a server", hint="Run it there, or give --db.")


class RemoteClient(RemoteMethods):
    """A client whose desk is a server."""

    def __init__(self, url: str, token: str = "", *, project: str | None = None, agent: str = "") -> None:
        self._transport = HttpTransport(url, token, agent)
        super().__init__(cast(Desk, RemoteDesk(self._transport)), project)

    @property
    def url(self) -> str:
        return self._transport.url

    @property
    def project(self) -> str:
        if self._project is not None:
            return self._project
        if self._first is None:
            self._first = str(self.projects()[0]["key"])
        return self._first

    def _verb(self, verb: str, named: Named, key: str | None, **args: Any) -> dict[str, Any]:
        reply: dict[str, Any] = self._request(verb, (named,), {"key": key, **args})
        return reply

    def _request(self, method: str, args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
        """Call a method of the server's client. Arguments that are None are left to their defaults."""
        name, key = key_name(getattr(Client, method)), None
        fields = {field: value for field, value in fields.items() if value is not None}
        if name:
            key = fields.setdefault(name, f"auto-{os.urandom(16).hex()}")
        body: dict[str, Any] = {"args": _plain(list(args)), "fields": _plain(fields)}
        if self._project is not None:
            body["project"] = self._project
        if self._version is not None:
            body["version"] = self._version
        reply = self._transport.call(method, body, key)
        if key is not None:
            self._shared.setdefault("done", key)
        return reply

    @property
    def done(self) -> str:
        """The idempotency key of the first change by this client, or ''."""
        return str(self._shared.get("done", ""))

    # --- actors -----------------------------------------------------------------------------------------------------

    def as_(self, who: Who) -> Client:
        """The credential decides the actor. A person may act as an agent, which has fewer rights."""
        if who.name.startswith("agent:") and self.who.is_person:
            agent = who.name.partition(":")[2]
        elif who.name == self.who.name:
            agent = self._transport.agent
        else:
            raise NotAllowed(f"{self.who.name} cannot act as {who.name}", reason="the credential decides who you are")
        other = RemoteClient(self._transport.url, self._transport.token, project=self._project, agent=agent)
        other._shared = self._shared
        other._transport.since = self._transport.since
        return other

    def do(self, verb: str, /, *, key: str | None = None, look: Any = None, then: Any = None, **args: Any) -> Any:
        raise Usage("A remote client makes no moves by verb", hint="Call the method of that verb.")

    def journal(self, run: Named) -> dict[str, Any]:
        """As of the local client, but from two requests."""
        task = self.show(run)
        return {"questions": task["questions"], "steps": task["steps"], "program": self.program(run)}

    # --- waiting ----------------------------------------------------------------------------------------------------

    def ask(
        self, task: Named, text: str, kind: str = "input", options: Iterable[Any] = (), wait: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        question = super().ask(task, text, kind, options, **fields)
        return self._wait_after_asking(question, wait) if wait else question

    def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        """As of the local client. The server may be unreachable for part of the time."""
        end = time.monotonic() + seconds
        while True:
            try:
                reply = super().wait_for(question, 0)
                left = end - time.monotonic()
                if reply["status"] != "pending" or not left > 0:
                    return reply
                self.desk.wait(min(left, POLL))
            except StoreTrouble:
                if not end - time.monotonic() > 0:
                    raise
                time.sleep(min(1.0, max(0.0, end - time.monotonic())))

    def watch(self, after: str | None = None, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        cursor = after if after is not None else self.desk.cursor()
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            page = self.events(cursor)
            cursor = page["cursor"]
            yield from page["events"]
            if page["events"]:
                continue
            left = POLL if end is None else end - time.monotonic()
            if left <= 0:
                return
            query = urlencode({"after": cursor, "seconds": f"{min(POLL, left):.3f}"})
            self._transport.request("GET", f"/api/changes?{query}")

    def sleep_until_due(self, seconds: float) -> None:
        self.desk.wait(min(seconds, POLL))

    # --- secrets: created here, so that a retry of a lost request returns the same ----------------------------------

    def create_token(self, *args: Any, **fields: Any) -> dict[str, Any]:
        return super().create_token(*args, **{"secret": new_secret("yt"), **fields})

    def create_link(self, *args: Any, **fields: Any) -> dict[str, Any]:
        return super().create_link(*args, **{"secret": new_secret("yl"), **fields})

    def close(self, task: Named | None = None, reason: str = "", *, key: str | None = None) -> dict[str, Any] | None:
        if task is None:
            self._close_desk()
            return None
        return super().close(task, reason, key=key)


def _plain(value: Any) -> Any:
    """The value as JSON can represent it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, "__next__") and not isinstance(value, str)):
        return [_plain(item) for item in value]
    return value


def reach(url: str, token: str, *, as_: str | None, project: str | None, agent: str) -> Client:
    """The client of a server, with a valid credential."""
    client = RemoteClient(url, token, project=project, agent=agent)
    who = client.who
    if as_ is not None and (as_ if ":" in as_ else f"human:{as_}") != who.name:
        client.close()
        raise NotAllowed(f"{who.name} cannot act as {as_[:80]}", reason="the credential decides who you are")
    return client
