"""The settings page: profile, notifications, sessions and tokens; for admins also members and projects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..client import Client
from ..core import permissions
from ..core.errors import Invalid, YourturnError
from ..core.rules import ROLES
from ..core.settings import SETTINGS, check
from ..display import person
from . import times, view_models
from .login import session_cookie, user_agent
from .request import Page, PageRequest, PageResult, Redirect, idempotency_key, is_number

THEMES = {"": "As the device says", "light": "Light", "dark": "Dark"}
URGENCIES = {"high": "High", "normal": "Normal", "low": "Low"}
PERSON_ROLES = tuple(role for role in ROLES if role not in ("system", "agent"))
LIFETIMES = {"": "Does not end", "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "a year"}
#: The scopes of a token, in words.
SCOPES = {
    "": "What its role may",
    "read": "Looking",
    "ask": "Asking",
    "work": "Working on tasks",
    "run": "Running workers",
    "answer": "Answering",
    "manage": "Settings and people",
}
MIN_PASSWORD = 8  #: characters
SAVED = {
    "password": "Your password is set. Other browsers are signed out.",
    "looks": "Saved.",
    "session": "Signed out there.",
    "token": "Revoked. The token is not valid any more.",
    "member": "Saved.",
    "removed": "Removed, with their tokens and sessions.",
    "project": "Saved.",
    "added": "Added.",
    "notices": "Saved.",
}


class SessionRow(NamedTuple):
    id: int
    who: view_models.ActorView
    about: str
    since: times.Moment
    here: bool


class Token(NamedTuple):
    name: str
    who: view_models.ActorView
    role: str
    scopes: str
    maker: str
    since: times.Moment
    ends: str
    over: str


class SettingField(NamedTuple):
    """A setting of a project, as a field of the form."""

    name: str
    about: str
    value: str
    choices: tuple[str, ...]


def show(request: PageRequest) -> PageResult:
    return _page(request)


def _page(request: PageRequest, wrong: tuple[str, str] = ("", ""), secret: Any = None, status: int = 200) -> PageResult:
    """`wrong`: the section and the error in it. `secret`: a token or link that is shown once."""
    client = request.client
    who, now = client.who, times.desk_time(client)
    preferences = client.preferences() if who.is_person else {}
    admin = permissions.may(who, "user_set")
    projects = client.projects() if admin else []
    at = request.query.get("project", "").upper() or (request.field("project").upper() if wrong[0] == "projects" else "")
    project = next((p for p in projects if p["key"] == at), projects[0] if projects else None)
    return Page(
        "settings.html",
        {
            "here": "settings",
            "wrong": wrong,
            "secret": secret,
            "saved": SAVED.get(request.query.get("saved", ""), ""),
            "preferences": preferences,
            "themes": THEMES,
            "urgencies": URGENCIES,
            "notify": preferences.get("notify", list(URGENCIES)),
            "keys": preferences.get("keys") is not False,
            "sessions": _sessions(client, request.session, now) if who.is_person else [],
            "tokens": _tokens(client, now) if who.is_person else [],
            "roles": PERSON_ROLES,
            "token_roles": [role for role in ("agent", *PERSON_ROLES) if permissions.at_most(role, who.role)],
            "scopes": SCOPES,
            "lifetimes": LIFETIMES,
            "admin": admin,
            "members": client.users() if admin else [],
            "projects": projects,
            "project": project,
            "values": [_as_typed(request, v) if wrong[0] == "projects" else v for v in _setting_fields(project)],
            "key": idempotency_key(),
            "site": _url(request),
            "shortest": MIN_PASSWORD,
        },
        status,
    )


def _url(request: PageRequest) -> str:
    address = request.state.address
    return address.public_url or f"{'https' if address.secure else 'http'}://{request.headers.get('host', 'localhost')}"


def _sessions(client: Client, secret: str, now: int) -> list[SessionRow]:
    """The sessions, this one first, then the newest."""
    own = client.desk.credentials.of_session(secret)[0] if secret else 0
    rows = sorted(client.sessions(), key=lambda s: (s["id"] != own, -s["id"]))
    return [
        SessionRow(
            s["id"], view_models.actor_view(s["actor"]), browser(s["about"]), times.moment(s["created_at"], now), s["id"] == own
        )
        for s in rows
    ]


#: A word of the User-Agent header, and the label of the browser or system. The first match counts.
BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "a Mac"),
    ("Linux", "Linux"),
)


def browser(user_agent: str | None) -> str:
    """'Chrome on Linux', or the header itself if it is unknown."""
    name, system = (next((label for word, label in table if word in (user_agent or "")), "") for table in (BROWSERS, SYSTEMS))
    return f"{name} on {system}" if name and system else name or user_agent or "A browser"


def _tokens(client: Client, now: int) -> list[Token]:
    """The valid tokens, and the last five invalid ones."""
    tokens = [_token(t, now) for t in client.tokens()]
    return [t for t in tokens if not t.over] + [t for t in tokens if t.over][-5:]


def _token(t: dict[str, Any], now: int) -> Token:
    expired = t["expires_at"] and times.seconds_until(t["expires_at"], now) <= 0
    whose, maker = view_models.actor_view(t["actor"]), person(t["created_by"]) if t["created_by"] else ""
    return Token(
        t["name"],
        whose,
        t["role"],
        ", ".join(SCOPES.get(name, name).lower() for name in t["scopes"]),
        "" if maker == whose.name else maker,
        times.moment(t["created_at"], now),
        f"until {times.future_day(t['expires_at'], now)}" if t["expires_at"] else "does not end",
        "revoked" if t["revoked_at"] else "expired" if expired else "",
    )


def _setting_fields(project: dict[str, Any] | None) -> list[SettingField]:
    if project is None:
        return []
    fields = []
    for name, setting in SETTINGS.items():
        value = project["settings"][name]
        if isinstance(setting.default, bool):
            fields.append(SettingField(name, setting.about, "on" if value else "off", ("on", "off")))
        else:
            text = _duration(value) if isinstance(value, float) else str(value)
            fields.append(SettingField(name, setting.about, text, setting.words))
    return fields


def _as_typed(request: PageRequest, field: SettingField) -> SettingField:
    """The field with the value of the refused form."""
    return field._replace(value=request.field(field.name).strip() or field.value)


def _duration(seconds: float) -> str:
    """As the form accepts it: 1h, 5m, 1d, 90s."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"


def _error_text(error: YourturnError) -> str:
    return f"{error}." + (f" {error.hint}" if error.hint else "")


def _save(request: PageRequest, section: str, save: Callable[[], object], saved: str, query: str = "") -> PageResult:
    """Saves and redirects to the section, or shows the page again with the error in it."""
    try:
        save()
    except YourturnError as error:
        return _page(request, (section, _error_text(error)), status=error.http_status)
    return Redirect(f"/settings?saved={saved}{query}#{section}")


# --- for every user ---------------------------------------------------------------------------------------------------


def set_appearance(request: PageRequest) -> PageResult:
    theme = request.field("theme")
    if theme not in THEMES:
        raise Invalid(f"There is no theme {theme[:40]!a}")
    keys = None if request.field("keys") else False
    return _save(request, "profile", lambda: request.client.set_preferences(theme=theme or None, keys=keys), "looks")


def set_notifications(request: PageRequest) -> PageResult:
    urgencies = [name for name in URGENCIES if name in request.fields("notify")]
    return _save(request, "notices", lambda: request.client.set_preferences(notify=urgencies), "notices")


def set_password(request: PageRequest) -> PageResult:
    """A new password ends all sessions of the user; this browser gets a new one."""
    name, password = person(request.client.who.name), request.field("password")
    if len(password) < MIN_PASSWORD:
        return _page(request, ("profile", f"A password has at least {MIN_PASSWORD} characters."), status=422)
    if password != request.field("again"):
        return _page(request, ("profile", "The two are not the same."), status=422)
    try:
        request.client.set_password(name, password, key=request.key)
        reply = request.client.login(name, password, about=user_agent(request))
    except YourturnError as error:
        return _page(request, ("profile", f"{error}."), status=error.http_status)
    return Redirect("/settings?saved=password#profile", (session_cookie(request, reply["session"]),))


def end_session(request: PageRequest) -> PageResult:
    number = request.field("session")
    if not is_number(number):
        raise Invalid("session must be a number")
    return _save(request, "sessions", lambda: request.client.end_session(int(number)), "session")


def create_token(request: PageRequest) -> PageResult:
    name, role, scope = request.field("name").strip(), request.field("role"), request.field("scope")
    actor = None if role == "agent" else request.client.who.name
    expires = request.field("expires") or None
    try:
        reply = request.client.create_token(
            name, role, actor=actor, scopes=[scope] if scope else None, expires=expires, key=request.key
        )
    except YourturnError as error:
        return _page(request, ("tokens", _error_text(error)), status=error.http_status)
    return _page(request, secret={"type": "token", "name": name, "text": reply["token"]})


def revoke_token(request: PageRequest) -> PageResult:
    return _save(request, "tokens", lambda: request.client.revoke_token(request.field("name")), "token")


# --- for admins -------------------------------------------------------------------------------------------------------


def set_member(request: PageRequest) -> PageResult:
    name, role = request.field("name").strip(), request.field("role")
    exists = name in {user["name"] for user in request.client.users()}
    return _save(request, "members", lambda: request.client.set_user(name, role), "member" if exists else "added")


def remove_member(request: PageRequest) -> PageResult:
    return _save(request, "members", lambda: request.client.remove_user(request.field("name")), "removed")


def create_link(request: PageRequest) -> PageResult:
    """A one-time login link, which is shown once."""
    name = request.field("name").strip()
    try:
        reply = request.client.create_link(name, key=request.key)
    except YourturnError as error:
        return _page(request, ("members", f"{error}."), status=error.http_status)
    return _page(request, secret={"type": "link", "name": name, "text": f"{_url(request)}/enter/{reply['link']}"})


def set_project(request: PageRequest) -> PageResult:
    """Sets only the changed settings, so that the others still follow the workspace."""
    key = request.field("project").strip().upper()
    project = next((p for p in request.client.projects() if p["key"] == key), None)
    if project is None:
        return _page(request, ("projects", f"There is no project {key[:40]}."), status=404)

    def save() -> None:
        fields = _setting_fields(project)
        changed = {f.name: value for f in fields if (value := request.field(f.name).strip()) not in ("", f.value)}
        for name, value in changed.items():  # all or none
            check(name, value)
        for name, value in changed.items():
            request.client.set(name, value, key)

    return _save(request, "projects", save, "project", f"&project={key}")


def create_project(request: PageRequest) -> PageResult:
    key, name = request.field("project").strip().upper(), request.field("name").strip() or None
    return _save(
        request, "projects", lambda: request.client.create_project(key, name, once=request.key), "added", f"&project={key}"
    )
