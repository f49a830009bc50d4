"""The settings page, for users and admins."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import ways
from tests.web.test_pages import Caller


@ways
def test_theme_and_shortcut_settings_are_stored(web, visit, width, js):
    page = visit("vera", "/settings", width=width, js=js)
    page.get_by_label("Dark").check()
    page.get_by_label("Keyboard shortcuts").uncheck()
    page.locator("#profile").get_by_role("button", name="Save").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_class("keyless")
    assert page.get_by_label("Dark").is_checked() and not page.get_by_label("Keyboard shortcuts").is_checked()
    if js:
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_hidden()
    page.locator("#notices").get_by_label("Low").uncheck()
    page.locator("#notices").get_by_role("button", name="Save").click()
    assert web.as_("human:vera").preferences()["notify"] == ["high", "normal"]
    assert not page.locator("#notices").get_by_label("Low").is_checked()


@ways
def test_a_new_password_ends_other_sessions_only(web, visit, width, js):
    other = visit("chidi", "/settings", width=width, js=js)
    page = visit("chidi", "/settings", width=width, js=js)
    page.get_by_text("Set a password").click()
    page.get_by_label("New password").fill("a better one 2")
    page.get_by_label("Again").fill("another")
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("alert")).to_contain_text("not the same")
    page.get_by_label("New password").fill("a better one 2")
    page.get_by_label("Again").fill("a better one 2")
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_text("Your password is set.")).to_be_visible()
    page.goto(f"{web.url}/tasks")
    expect(page.locator("h1")).to_have_text("Tasks")
    other.goto(f"{web.url}/settings")
    assert "/login" in other.url
    other.get_by_label("Name").fill("chidi")
    other.get_by_label("Password").fill("a better one 2")
    other.get_by_role("button", name="Sign in").click()
    expect(other.locator("h1")).to_have_text("Settings")


@ways
def test_a_token_is_shown_once(web, visit, width, js):
    page = visit("ana", "/settings", width=width, js=js)
    tokens = page.locator("#tokens")
    tokens.get_by_label("Name").fill("laptop")
    tokens.get_by_label("Role").select_option("agent")
    tokens.get_by_label("Good for").select_option("ask")
    tokens.get_by_role("button", name="Create token").click()
    secret = page.locator("#secret").inner_text()
    assert re.fullmatch(r"yt_[0-9a-f]{48}", secret)
    assert secret not in page.url
    answer = page.request.get(f"{web.url}/api/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["role"] == "agent"
    expect(tokens.locator("li").filter(has_text="laptop")).to_contain_text("For asking.")
    assert next(t["scopes"] for t in web.as_("human:ana").tokens() if t["name"] == "laptop") == ["ask"]
    page.goto(f"{web.url}/settings")
    assert secret not in page.content()
    tokens.get_by_role("button", name="Revoke laptop").click()
    expect(tokens.get_by_text("revoked")).to_be_visible()
    assert page.request.get(f"{web.url}/api/me", headers={"Authorization": f"Bearer {secret}"}).status == 401


@ways
def test_member_creates_own_tokens_only(web, visit, width, js):
    page = visit("chidi", "/settings", width=width, js=js)
    assert page.locator("#t-role option").all_inner_texts() == ["agent", "viewer", "member"]
    page.locator("#t-name").fill("mine")
    page.locator("#t-role").select_option("member")
    page.get_by_role("button", name="Create token").click()
    secret = page.locator("#secret").inner_text()
    answer = page.request.get(f"{web.url}/api/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["actor"] == "human:chidi"
    assert page.locator("#members, #projects").count() == 0


@ways
def test_admin_manages_members(web, visit, width, js):
    page = visit("ana", "/settings", width=width, js=js)
    members = page.locator("#members")
    members.locator("#n-name").fill("dora")
    members.locator("#n-role").select_option("approver")
    members.get_by_role("button", name="Add member").click()
    row = members.locator("li").filter(has_text="dora")
    expect(row.locator("select")).to_have_value("approver")
    row.locator("select").select_option("viewer")
    row.get_by_role("button", name="Save the role of dora").click()
    expect(row.locator("select")).to_have_value("viewer")
    row.locator("summary").click()
    row.get_by_role("button", name="Make a link").click()
    link = page.locator("#secret").inner_text()
    guest = page.context.browser.new_context(java_script_enabled=js)
    try:
        theirs = guest.new_page()
        theirs.goto(link)
        if not js:
            theirs.get_by_role("button", name="Sign in as dora").click()
        expect(theirs.locator(".foot")).to_contain_text("dora")
    finally:
        guest.close()
    row.locator("summary").click()
    row.get_by_role("button", name="Remove dora").click()
    expect(members.locator("li").filter(has_text="dora")).to_have_count(0)
    assert "dora" not in {user["name"] for user in web.as_("human:ana").users()}


@ways
def test_admin_changes_project_settings(web, visit, width, js):
    page = visit("ana", "/settings?project=OPS", width=width, js=js)
    projects = page.locator("#projects")
    projects.get_by_label("review").fill("2h")
    projects.get_by_label("approvals").select_option("approvers")
    projects.get_by_label("max retries").fill("five")
    projects.get_by_role("button", name="Save OPS").click()
    expect(projects.get_by_role("alert")).to_contain_text("max_retries")
    projects.get_by_label("max retries").fill("5")
    projects.get_by_label("review").fill("2h")
    projects.get_by_role("button", name="Save OPS").click()
    settings = next(p["settings"] for p in web.as_("human:ana").projects() if p["key"] == "OPS")
    assert settings["max_retries"] == 5 and settings["approvals"] == "approvers" and settings["review"] == 7200
    assert next(p["settings"] for p in web.as_("human:ana").projects() if p["key"] == "API")["max_retries"] == 3
    expect(projects.get_by_label("review")).to_have_value("2h")


def test_admin_settings_are_reserved(web):
    ben, ana = Caller(web, "ben"), Caller(web)
    for path, form in (
        ("member", {"name": "ben", "role": "admin"}), ("remove", {"name": "ana"}), ("project", {"project": "OPS", "lease": "9h"}),
        ("newproject", {"project": "EVIL"}), ("link", {"name": "ana"}), ("token", {"name": "x", "role": "admin"}),
    ):  # fmt: skip
        assert ben.post(f"/settings/{path}", **form).status == 403, path
    sessions = {s["actor"]: s["id"] for s in web.as_("human:ana").sessions()}
    assert ben.post("/settings/session", session=sessions["human:ana"]).status == 404
    assert ben.post("/settings/session", session=sessions["human:ben"]).status == 303
    assert ben.get("/settings").headers["location"].startswith("/login") and ana.get("/settings").status == 200
