"""The desk over HTTP: the same methods, values and errors, spoken to a server instead of a database.

A method is said by its name (`POST /api/desk/{method}`), so there is nothing here to keep up with the client. What the server
does not do for us is waiting: we look, ask it to tell us when something changes, and look again.

A request that was lost on the way, or that something between us and the server refused for now (502, 503, 504, 429), is sent
again: looks as they are, changes with the same idempotency key, so nothing happens twice. Every change gets a key here.
"""

from __future__ import annotations

import json
import os
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode, urlsplit

from ..core.errors import Busy, MaybeDone, NotAllowed, NotKnown, StoreTrouble, TooMany, Usage, YourturnError, every_error
from ..core.model import Who
from ..desk.desk import Desk
from . import Client, Named
from .admin import new_secret
from .refs import key_name

#: Seconds that the server lets us wait at a time, and that an answer may take.
SLICE, PATIENCE = 10.0, 60.0
#: Seconds for which a server that was there may be away, and that it may tell us to wait before the next try.
LULL, WAIT = 30.0, 5.0
_ERRORS = {error.code: error for error in every_error()}


class Came(NamedTuple):
    """What came of one try."""

    value: Any
    error: YourturnError | None = None
    sent: bool = True  #: the whole request was written
    passes: bool = False  #: it may be better in a moment
    retry: float = 0.0  #: that many seconds, says the server


class Line:
    """Requests to one server, on a connection for each thread."""

    def __init__(self, url: str, token: str, agent: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Usage(f"{url[:80]!a} is no address of a server", hint="Like: YOURTURN_URL=https://turn.example.org")
        self.url = url.rstrip("/")
        self.token = token
        self.agent = agent
        self.since: float | None = None  #: when the server answered first
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
        if found.sock is not None and _readable(found.sock):  # between two requests only the end can be read
            found.close()
        return cast(HTTPConnection, found)

    def say(self, method: str, body: dict[str, Any], key: str | None = None) -> Any:
        """A method of the client, by its name."""
        return self.call("POST", f"/api/desk/{quote(method)}", body, key, method)["result"]

    def call(self, verb: str, path: str, body: Any = None, key: str | None = None, method: str = "") -> Any:
        """Sends a request until it is answered: at least three times, and for as long as the server has been there before, at
        most LULL. What was sent, and would count twice, is not sent again."""
        data = None if body is None else json.dumps(body).encode()
        maybe, tries, began = False, 0, time.monotonic()
        lull = 0.0 if self.since is None else min(LULL, began - self.since)
        while True:
            tries += 1
            came = self._try(verb, path, data)
            if came.error is None:
                self.since = self.since or began
                return came.value
            maybe = maybe or (came.sent and came.passes and not isinstance(came.error, TooMany))
            pause = max(min(2.0, 0.05 * 4**tries), came.retry)
            twice = verb == "GET" or _twice(method)
            over = tries >= 3 and time.monotonic() - began + pause > lull
            if not came.passes or over or pause > WAIT or (came.sent and not twice and key is None):
                break
            time.sleep(pause)
        gone = isinstance(came.error, NotKnown)  # as who revokes its own token is, when it says so again
        if twice or not maybe or not (came.passes or gone):
            raise came.error
        raise _maybe(came.error, key)

    def _try(self, verb: str, path: str, data: bytes | None) -> Came:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        for name, value in (("Authorization", self.token and f"Bearer {self.token}"), ("Yourturn-Agent", self.agent)):
            if value:
                headers[name] = value
        connection, sent = self._connection(), False
        try:
            connection.request(verb, self._parts.path.rstrip("/") + path, data, headers)
            sent = True
            answer = connection.getresponse()
            return _reply(answer.status, answer.read(), answer.headers.get("retry-after", ""))
        except (HTTPException, OSError) as trouble:
            connection.close()
            why = getattr(trouble, "strerror", None) or str(trouble) or type(trouble).__name__
            strange = "certificate verify failed" in str(trouble)
            hint = "SSL_CERT_FILE names the certificate to trust." if strange else "Is it running? See YOURTURN_URL."
            error = StoreTrouble(f"The server at {self.url} cannot be reached", reason=why, hint=hint)
            return Came(None, error, sent, passes=True)

    def close(self) -> None:
        while self._all:
            self._all.pop().close()
        self._local = threading.local()


def _readable(sock: Any) -> bool:
    with selectors.DefaultSelector() as look:
        look.register(sock, selectors.EVENT_READ)
        return bool(look.select(0))


def _twice(method: str) -> bool:
    """Can it be said twice, because it changes nothing, or the second time nothing more?"""
    from ..core import permissions

    return bool(method) and (permissions.looks(method) or method in permissions.SAME_TWICE)


def _maybe(error: YourturnError, key: str | None) -> MaybeDone:
    """What to do about a change that was sent, and of which nobody has heard."""
    then = f"Say it again with --idempotency-key {key}: it counts once." if key else "Look before you say it again."
    found = MaybeDone(error.message, reason=error.reason, hint=f"It may have been done. {then}")
    found.key = key or ""
    return found


def _reply(status: int, raw: bytes, retry: str) -> Came:
    try:
        found = json.loads(raw) if raw else None
    except ValueError:
        found = None
    if status < 400 and (found is not None or not raw):
        return Came(found)
    said = found.get("error") if isinstance(found, dict) else None
    seconds = int(retry) if retry.isdigit() else 0
    error: YourturnError
    if not isinstance(said, dict):
        sort = TooMany if status == TooMany.http_status else StoreTrouble
        error = sort(f"The server answered {status}, and not in our words", hint="Is there a Yourturn at YOURTURN_URL?")
        passes = status >= 500 or sort is TooMany
    else:
        error = _ERRORS.get(said.get("code", ""), YourturnError)(str(said.get("message")), hint=str(said.get("hint") or ""))
        passes = type(error) in (StoreTrouble, Busy, TooMany)
    if isinstance(error, TooMany) and seconds:
        error.retry_after = seconds
    return Came(None, error, passes=passes, retry=seconds)


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
        return str(self.line.say("desk_cursor", {}))

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
        name, key = key_name(getattr(Client, method)), None
        if name:
            key = f"auto-{os.urandom(16).hex()}" if fields.get(name) is None else fields[name]
            fields = {**fields, name: key}
        body: dict[str, Any] = {"args": _plain(list(args)), "fields": _plain(fields)}
        if self._project is not None:
            body["project"] = self._project
        if self._version is not None:
            body["version"] = self._version
        found = self._line.say(method, body, key)
        if key is not None:
            self._beside.setdefault("done", key)
        return found

    @property
    def done(self) -> str:
        """The idempotency key of the first change that was made here, or ''."""
        return str(self._beside.get("done", ""))

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
        other._line.since = self._line.since
        return other

    def do(self, verb: str, /, *, key: str | None = None, look: Any = None, then: Any = None, **args: Any) -> Any:
        raise Usage("A server is spoken to by methods", hint="Use the method of that verb.")

    def journal(self, run: Named) -> dict[str, Any]:
        """Made of two requests that every server answers."""
        task = self.show(run)
        return {"questions": task["questions"], "steps": task["steps"], "program": self.program(run)}

    # --- waiting ----------------------------------------------------------------------------------------------------

    def ask(
        self, task: Named, text: str, kind: str = "input", options: Any = (), wait: float | None = None, **fields: Any
    ) -> Any:
        found = self._say_by_name("ask", (task, text, kind, list(options)), fields)
        return self._heard(found, wait) if wait else found

    def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        """A server that is away meanwhile may come back until the time is over."""
        ends = time.monotonic() + seconds
        while True:
            try:
                found: dict[str, Any] = self._say_by_name("wait_for", (question, 0), {})
                left = ends - time.monotonic()
                if found["status"] != "pending" or not left > 0:
                    return found
                self.desk.wait(min(left, SLICE))
            except StoreTrouble:
                if not ends - time.monotonic() > 0:
                    raise
                time.sleep(min(1.0, max(0.0, ends - time.monotonic())))

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

    # --- secrets: made here, so that they are known also when the reply is lost ----------------------------------------

    def create_token(self, *args: Any, **fields: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._say_by_name("create_token", args, {"secret": new_secret("yt"), **fields})
        return found

    def create_link(self, *args: Any, **fields: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._say_by_name("create_link", args, {"secret": new_secret("yl"), **fields})
        return found

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
_ELSEWHERE = ("start", "answer_and_claim", "export", "import_", "backup", "login", "use_link", "whose_link", "logout")
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
