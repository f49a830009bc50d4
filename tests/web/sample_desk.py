"""Sample desk for screenshots and tests of pages: four projects, waiting agents, one question of each kind."""

from __future__ import annotations

from typing import Any

from yourturn.client import Client
from yourturn.config import connect
from yourturn.testing import FakeClock

DIFF = """\
diff --git a/settings/theme.py b/settings/theme.py
index 3c1e9d0..9f2c41a 100644
--- a/settings/theme.py
+++ b/settings/theme.py
@@ -18,6 +18,9 @@ class Theme:
     name: str
-    dark: bool = False
+    dark: bool | None = None
+
+    def follows_system(self) -> bool:
+        return self.dark is None
     accent: str = "blue"
diff --git a/settings/page.html b/settings/page.html
index 1111111..2222222 100644
--- a/settings/page.html
+++ b/settings/page.html
@@ -4,3 +4,4 @@
 <label>Theme</label>
-<select><option>Light<option>Dark</select>
+<select><option>System<option>Light<option>Dark</select>
+<p>Follows your system unless you choose.</p>
"""
TITLES = {
    "API": ("Split the payments table", "Backfill payment methods", "New checkout", "Drop the old column", "Login for the public API", "Refresh tokens", "Rate limits"),
    "WEB": ("Dark theme for settings", "Theme switch in the menu", "Merge the account branches", "Empty states", "Search in the header"),
    "OPS": ("Nightly backup to cold storage", "Release 4.2", "Rotate the staging keys"),
    "DOC": ("Name the new plan", "Style guide", "Explain webhooks"),
}  # fmt: skip
ABOUT = {
    "Explain webhooks": "A page for people who have never seen one.\n\nFirst the picture, then a request by hand, then retries.",
    "Login for the public API": "Accounts of the site also work for the API. Support must be able to lock one at once.",
}


def fill(address: str, clock: FakeClock) -> dict[str, str]:
    """Fills a desk that `init` made with project API. Returns the ids of the questions by name."""
    ana = connect(address, as_="human:ana", project="API", env={}, clock=clock)
    try:
        return _fill(ana, address, clock)
    finally:
        ana.close()


def _fill(ana: Client, address: str, clock: FakeClock) -> dict[str, str]:
    def agent(name: str) -> Client:
        client = connect(address, as_=f"agent:{name}", project="API", env={}, clock=clock)
        opened.append(client)
        return client

    opened: list[Client] = []
    for key, name in (("WEB", "Website"), ("OPS", "Operations"), ("DOC", "Documents")):
        ana.create_project(key, name)
    for name, role in (("ana", "admin"), ("ben", "approver"), ("chidi", "member"), ("vera", "viewer")):
        ana.set_user(name, role)
    tasks: dict[str, list[str]] = {
        project: [
            ana.create(title, project=project, priority=1 + at % 3, description=ABOUT.get(title))["key"]
            for at, title in enumerate(titles)
        ]
        for project, titles in TITLES.items()
    }
    api, web, ops, doc = tasks["API"], tasks["WEB"], tasks["OPS"], tasks["DOC"]
    for task, needs in (
        (api[1], api[0]),
        (api[2], api[0]),
        (api[3], api[1]),
        (api[5], api[4]),
        (api[6], api[4]),
        (web[1], web[0]),
    ):
        ana.depend(task, needs)
    coder, architect, keeper, writer = (agent(name) for name in ("coder", "architect", "keeper", "writer"))
    ids: dict[str, str] = {}

    def ask(name: str, who: Client, task: str, text: str, kind: str = "input", park: bool = True, **more: Any) -> None:
        claim = who.claim(task, f"{who.who.name.partition(':')[2]}-1")["claim"]
        if name == "approval":
            who.keep_patch(claim, "3c1e9d0a77b1", DIFF)
        who.write_output(
            claim, [("said", f"Working on {task}"), ("tool", "pytest -q: 41 passed in 12.8 s"), ("said", "I need a person now.")]
        )
        ids[name] = who.ask(task, text, kind, claim=claim, **more)["id"]
        if park:
            who.park(claim)

    # earlier rounds of the login
    claim = architect.claim(api[4], "architect-1")["claim"]
    first = architect.ask(api[4], "Which clients must be able to log in?", claim=claim)
    clock.advance(minutes=6)
    ana.answer(first["id"], "Web now, mobile in autumn. No third parties.")
    architect.ask(api[4], "Do old tokens have to keep working?", options=["Yes", "No"], default="No", timeout="30m", claim=claim)
    clock.advance(minutes=31)
    ana.reconcile()
    architect.release(claim)
    clock.advance(days=1)

    ask("escalation", coder, web[2], "Two branches rename the same column and I can't merge them", "escalation",
        reason="irreconcilable_conflict", context={"text": "account/split and account/rename both touch users.plan."})  # fmt: skip
    clock.advance(hours=3)
    ask("approval", coder, web[0], "The dark theme for settings is finished. Sign it off?", "approval",
        context={"text": "212 tests pass. I followed the tokens of the design system.", "current_step": "done"})  # fmt: skip
    clock.advance(hours=1)
    ask("nonblocking", writer, doc[1], "Is British spelling right for the docs?", options=["British", "American"], default="British",
        blocking=False, park=False)  # fmt: skip
    clock.advance(minutes=40)
    ask("text", writer, doc[0], "What do we call the new plan in public texts?",
        context={"text": "The contract says “Team Plus”, the site says “Business”."}, on_timeout="keep")  # fmt: skip
    ask("checkpoint", keeper, ops[1], "Approve deployment to production?", "checkpoint", timeout="21h")
    clock.advance(minutes=10)
    ask("choice", architect, api[4], "JWT or server sessions for the login?", timeout="30m", default="sessions", reason="decision_needed",
        options=[{"id": "sessions", "label": "Sessions", "description": "A row per login in PostgreSQL. Can be revoked at once; one read per request."},
                 {"id": "jwt", "label": "JWT", "description": "Signed token of 15 minutes plus refresh token. Revoking takes up to 15 minutes."}],
        allow_other=True, confidence=0.6,
        context={"text": "The mobile app arrives in autumn and would like tokens. I measured 0.4 ms for the session read.", "suggestion": "jwt"})  # fmt: skip
    ask("recovery", keeper, ops[0], "The upload failed three times. How should I go on?", "recovery", timeout="10m",
        options=[{"id": "wait", "label": "Wait 15 min and retry", "description": "Keeps the parts that are already there."},
                 {"id": "second", "label": "Use the second region", "description": "Starts again in cold-eu-2; about 50 min."},
                 {"id": "skip", "label": "Skip tonight", "description": "The next one runs tomorrow at 02:00."}],
        context={"error": "503 SlowDown: reduce your request rate\n  attempt 3 of 3, part 118 of 240, 4.6 GiB sent", "suggestion": "wait"})  # fmt: skip
    clock.advance(minutes=1)
    ask("permission", coder, api[0], "Run the migration on the staging database?", "permission", timeout="15m", metadata={"rule": "shell on staging"},
        action={"tool": "Bash", "input": {"command": "alembic upgrade head && \\\n    psql \"$STAGING_URL\" -c 'VACUUM ANALYZE payments'", "timeout": 120},
                "folder": "worktrees/API-1/services/payments"},
        context={"text": "The migration only adds a table, so it is safe to run during the day. Tests pass locally. I vacuum afterwards because the planner statistics are stale."})  # fmt: skip
    clock.advance(minutes=3)
    ask("boolean", keeper, ops[2], "Rotate the read-only keys as well?", response_type="boolean", on_timeout="keep")
    ana.set("review", "ask", "WEB")
    claim = coder.claim(web[3], "coder-2")["claim"]
    coder.complete(claim, "Empty states for all lists, with words and a picture.")
    ids["finished"] = ana.show(web[3])["questions"][-1]["id"]
    ids["work"] = ana.await_person(doc[2], "work", "Draw the picture of the webhook flow by hand")["questions"][-1]["id"]
    asked = ana.ask(
        api[6], "Is the budget for the load test approved?", response_type="boolean", reviewer="ben", on_timeout="keep"
    )
    ids["for_ben"] = asked["id"]
    for one in opened:
        one.close()
    return ids
