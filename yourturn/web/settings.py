"""Settings: your own affairs, and, for an admin, everybody's."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..client import Client
from ..client.admin import SESSION
from ..core import permissions
from ..core.errors import Invalid, YourturnError
from ..core.rules import ROLES
from ..core.settings import SETTINGS, check
from ..display import person
from ..server import auth
from . import view_models
from .inbox import new_key
from .request import Go, Page, Shown, Visit

THEMES = {"": "As the device says", "light": "Light", "dark": "Dark"}
URGENCIES = {"high": "High", "normal": "Normal", "low": "Low"}
PEOPLE = tuple(role for role in ROLES if role not in ("system", "agent"))
LASTS = {"": "Does not end", "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "a year"}
#: What a token is good for: the scopes of the table, in words. An agent's usual one is work.
SCOPES = {
    "": "What its role may",
    "read": "Looking",
    "ask": "Asking",
    "work": "Working on tasks",
    "run": "Running workers",
    "answer": "Answering",
    "manage": "Settings and people",
}
SHORTEST = 8  #: letters of a password
SAVED = {
    "password": "Your password is set. Other browsers are signed out.",
    "looks": "Saved.",
    "session": "Signed out there.",
    "token": "Revoked. It is worthless now.",
    "member": "Saved.",
    "removed": "Removed, with their tokens and sessions.",
    "project": "Saved.",
    "added": "Added.",
    "notices": "Saved.",
}


class Session(NamedTuple):
    id: int
    who: view_models.Who
    about: str
    since: view_models.Moment
    here: bool


class Token(NamedTuple):
    name: str
    who: view_models.Who
    role: str
    scopes: str
    maker: str
    since: view_models.Moment
    ends: str
    over: str


class Value(NamedTuple):
    name: str
    about: str
    value: str
    words: tuple[str, ...]


def show(visit: Visit) -> Shown:
    return _page(visit)


def _page(visit: Visit, wrong: tuple[str, str] = ("", ""), secret: Any = None, status: int = 200) -> Shown:
    """`wrong`: in which section, and what. `secret`: what is shown once."""
    client = visit.client
    who, now = client.who, view_models.now_of(client)
    wishes = client.preferences() if who.is_person else {}
    admin = permissions.may(who, "user_set")
    projects = client.projects() if admin else []
    at = visit.query.get("project", "").upper() or (visit.field("project").upper() if wrong[0] == "projects" else "")
    project = next((p for p in projects if p["key"] == at), projects[0] if projects else None)
    return Page(
        "settings.html",
        {
            "here": "settings",
            "wrong": wrong,
            "secret": secret,
            "saved": SAVED.get(visit.query.get("saved", ""), ""),
            "wishes": wishes,
            "themes": THEMES,
            "urgencies": URGENCIES,
            "notify": wishes.get("notify", list(URGENCIES)),
            "keys": wishes.get("keys") is not False,
            "sessions": _sessions(client, visit.session, now) if who.is_person else [],
            "tokens": _tokens(client, now) if who.is_person else [],
            "roles": PEOPLE,
            "token_roles": [role for role in ("agent", *PEOPLE) if permissions.at_most(role, who.role)],
            "scopes": SCOPES,
            "lasts": LASTS,
            "admin": admin,
            "members": client.users() if admin else [],
            "projects": projects,
            "project": project,
            "values": [_typed(visit, v) if wrong[0] == "projects" else v for v in _values(project)],
            "key": new_key(),
            "site": _url(visit),
            "shortest": SHORTEST,
        },
        status,
    )


def _url(visit: Visit) -> str:
    address = visit.state.address
    return address.public_url or f"{'https' if address.secure else 'http'}://{visit.headers.get('host', 'localhost')}"


def _sessions(client: Client, secret: str, now: int) -> list[Session]:
    mine = client.desk.credentials.of_session(secret)[0] if secret else 0
    return [
        Session(s["id"], view_models.who(s["actor"]), browser(s["about"]), view_models.at(s["created_at"], now), s["id"] == mine)
        for s in sorted(client.sessions(), key=lambda s: (s["id"] != mine, -s["id"]))
    ]


#: A word in what a browser says of itself, and what it is called. The first that fits counts.
BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "a Mac"),
    ("Linux", "Linux"),
)


def browser(about: str | None) -> str:
    """'Chrome on Linux', or what it says itself."""
    name, system = (next((label for word, label in some if word in (about or "")), "") for some in (BROWSERS, SYSTEMS))
    return f"{name} on {system}" if name and system else name or about or "A browser"


def _tokens(client: Client, now: int) -> list[Token]:
    found = []
    for t in client.tokens():
        over = (
            "revoked"
            if t["revoked_at"]
            else "expired"
            if t["expires_at"] and view_models.seconds_until(t["expires_at"], now) <= 0
            else ""
        )
        ends = f"until {view_models.day(t['expires_at'], now)}" if t["expires_at"] else "does not end"
        whose, scopes = view_models.who(t["actor"]), ", ".join(SCOPES.get(name, name).lower() for name in t["scopes"])
        maker = person(t["created_by"]) if t["created_by"] else ""
        since = view_models.at(t["created_at"], now)
        found.append(Token(t["name"], whose, t["role"], scopes, "" if maker == whose.name else maker, since, ends, over))
    return [t for t in found if not t.over] + [t for t in found if t.over][-5:]


def _values(project: dict[str, Any] | None) -> list[Value]:
    if project is None:
        return []
    found = []
    for name, setting in SETTINGS.items():
        value = project["settings"][name]
        if isinstance(setting.default, bool):
            found.append(Value(name, setting.about, "on" if value else "off", ("on", "off")))
        else:
            timed = isinstance(value, float)
            found.append(Value(name, setting.about, _length(value) if timed else str(value), setting.words))
    return found


def _typed(visit: Visit, value: Value) -> Value:
    """What somebody has typed stays, with what is wrong with it."""
    return value._replace(value=visit.field(value.name).strip() or value.value)


def _length(seconds: float) -> str:
    """As one may write it: 1h, 5m, 1d, 90s."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"


def _try(visit: Visit, section: str, deed: Any, saved: str, more: str = "") -> Shown:
    """Do it and say so; or show the page again, with what went wrong where it did."""
    try:
        deed()
    except YourturnError as error:
        return _page(visit, (section, f"{error}." + (f" {error.hint}" if error.hint else "")), status=error.http_status)
    return Go(f"/settings?saved={saved}{more}#{section}")


# --- your own affairs -------------------------------------------------------------------------------------------------


def looks(visit: Visit) -> Shown:
    theme = visit.field("theme")
    if theme not in THEMES:
        raise Invalid(f"There is no theme {theme[:40]!a}")
    keys = None if visit.field("keys") else False
    return _try(visit, "profile", lambda: visit.client.set_preferences(theme=theme or None, keys=keys), "looks")


def notices(visit: Visit) -> Shown:
    wanted = [name for name in URGENCIES if name in visit.fields("notify")]
    return _try(visit, "notices", lambda: visit.client.set_preferences(notify=wanted), "notices")


def password(visit: Visit) -> Shown:
    """Everybody who came in with the old one is out; who sets it comes in again at once."""
    name, new = person(visit.client.who.name), visit.field("password")
    if len(new) < SHORTEST:
        return _page(visit, ("profile", f"A password has at least {SHORTEST} letters."), status=422)
    if new != visit.field("again"):
        return _page(visit, ("profile", "The two are not the same."), status=422)
    try:
        visit.client.set_password(name, new, key=visit.key)
        made = visit.client.login(
            name, new, about="".join(c for c in visit.headers.get("user-agent", "") if c.isprintable())[:200]
        )
    except YourturnError as error:
        return _page(visit, ("profile", f"{error}."), status=error.http_status)
    cookie = auth.session_cookie(visit.state.address, made["session"], SESSION // 1_000_000)
    return Go("/settings?saved=password#profile", (("set-cookie", cookie),))


def end_session(visit: Visit) -> Shown:
    number = visit.field("session")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise Invalid("session must be a number")
    return _try(visit, "sessions", lambda: visit.client.end_session(int(number)), "session")


def create_token(visit: Visit) -> Shown:
    name, role = visit.field("name").strip(), visit.field("role")
    actor, scope = (None if role == "agent" else visit.client.who.name), visit.field("scope")
    try:
        made = visit.client.create_token(
            name, role, actor=actor, scopes=[scope] if scope else None, expires=visit.field("expires") or None, key=visit.key
        )
    except YourturnError as error:
        return _page(visit, ("tokens", f"{error}." + (f" {error.hint}" if error.hint else "")), status=error.http_status)
    return _page(visit, secret={"sort": "token", "name": name, "text": made["token"]})


def revoke_token(visit: Visit) -> Shown:
    return _try(visit, "tokens", lambda: visit.client.revoke_token(visit.field("name")), "token")


# --- everybody's ------------------------------------------------------------------------------------------------------


def set_member(visit: Visit) -> Shown:
    name, role = visit.field("name").strip(), visit.field("role")
    known = name in {user["name"] for user in visit.client.users()}
    return _try(visit, "members", lambda: visit.client.set_user(name, role), "member" if known else "added")


def remove_member(visit: Visit) -> Shown:
    return _try(visit, "members", lambda: visit.client.remove_user(visit.field("name")), "removed")


def link(visit: Visit) -> Shown:
    """A way in for somebody new: shown once, works once."""
    name = visit.field("name").strip()
    try:
        made = visit.client.create_link(name, key=visit.key)
    except YourturnError as error:
        return _page(visit, ("members", f"{error}."), status=error.http_status)
    return _page(visit, secret={"sort": "link", "name": name, "text": f"{_url(visit)}/enter/{made['link']}"})


def set_project(visit: Visit) -> Shown:
    """Only what was changed is said, so that what comes from the workspace stays so."""
    project = visit.field("project").strip().upper()
    now = next((p for p in visit.client.projects() if p["key"] == project), None)
    if now is None:
        return _page(visit, ("projects", f"There is no project {project[:40]}."), status=404)

    def deed() -> None:
        given = {one.name: visit.field(one.name).strip() for one in _values(now)}
        changed = {one.name: given[one.name] for one in _values(now) if given[one.name] not in ("", one.value)}
        for name, value in changed.items():  # all of them or none
            check(name, value)
        for name, value in changed.items():
            visit.client.set(name, value, project)

    return _try(visit, "projects", deed, "project", f"&project={project}")


def create_project(visit: Visit) -> Shown:
    key = visit.field("project").strip().upper()
    return _try(
        visit,
        "projects",
        lambda: visit.client.create_project(key, visit.field("name").strip() or None, once=visit.key),
        "added",
        f"&project={key}",
    )
