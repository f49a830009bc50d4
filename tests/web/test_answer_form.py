"""The answer form: every kind of question, with and without JavaScript, on a desk and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import ways


def say(page: Page, name: str) -> None:
    page.locator(".answer").get_by_role("button", name=name).click()


def sent(page: Page, text: str = "Sent.") -> None:
    expect(page.get_by_text(text).first).to_be_visible()


def add_words(page: Page, text: str) -> None:
    """Writes into the text field, which is folded if the answer does not need it."""
    field = page.locator("textarea[name=text]")
    if not field.is_visible():
        page.locator("details.words > summary").click()
    field.fill(text)


@ways
def test_each_kind_of_question_can_be_answered(web, visit, width, js):
    page = visit("ana", width=width, js=js)

    def go(name: str) -> str:
        page.goto(f"{web.url}/questions/{web.q[name]}")
        return web.q[name]

    def response_of(question: str, text: str = "Sent."):
        sent(page, text)
        q = web.desk.show(question)
        assert q["responded_by"] == "human:ana" and q["status"] == "answered"
        return q["response"]

    q = go("permission")
    say(page, "Allow once")
    assert response_of(q, "Sent. coder goes on with API-1.")["verdict"] == "approved"

    q = go("choice")
    page.get_by_text("JWT", exact=True).click()
    page.locator("textarea[name=text]").fill("Keep it short-lived.")
    say(page, "Send")
    assert response_of(q) == {"type": "choice", "value": "jwt", "text": "Keep it short-lived.", "verdict": "approved"}

    q = go("recovery")
    page.get_by_text("Skip tonight").click()
    say(page, "Send")
    assert response_of(q)["value"] == "skip"

    q = go("text")
    page.get_by_label("Your answer").fill("Team Plus\nin all texts")
    say(page, "Send answer")
    assert response_of(q)["value"] == "Team Plus\nin all texts"

    q = go("escalation")
    page.get_by_label("Your answer").fill("Rename first, then split.")
    say(page, "Send answer")
    assert response_of(q)["value"] == "Rename first, then split."

    q = go("boolean")
    say(page, "No")
    assert response_of(q)["value"] is False

    q = go("checkpoint")
    add_words(page, "Not on a Friday.")
    say(page, "Send back")
    assert response_of(q) == {"type": "approval", "value": None, "text": "Not on a Friday.", "verdict": "rejected"}

    q = go("approval")
    say(page, "Approve and finish")
    assert response_of(q, "Sent. WEB-1 is done.") and web.desk.show("WEB-1")["state"] == "done"

    q = go("nonblocking")
    page.get_by_text("American", exact=True).click()
    say(page, "Send")
    assert response_of(q)["value"] == "American"

    q = go("work")
    say(page, "Mark as done")
    assert response_of(q)

    q = go("finished")
    say(page, "Approve and finish")
    assert response_of(q)["verdict"] == "approved"
    assert web.desk.show(web.desk.show(q)["task"])["state"] == "done"


@ways
def test_number_multiple_choice_and_other_answer(web, visit, width, js):
    number = web.ask("How many words?", response_type="number")
    several = web.ask("Which languages?", options=["de", "en", "fr"], multi=True)
    page = visit("ana", f"/questions/{number}", width=width, js=js)
    page.get_by_label("A number").fill("800")
    say(page, "Send answer")
    sent(page)
    assert web.desk.show(number)["response"]["value"] == 800
    page.goto(f"{web.url}/questions/{several}")
    page.get_by_text("de", exact=True).click()
    page.get_by_text("fr", exact=True).click()
    say(page, "Send")
    sent(page)
    assert web.desk.show(several)["response"]["value"] == ["de", "fr"]
    page.goto(f"{web.url}/questions/{web.q['choice']}")
    page.get_by_text("Something else", exact=True).first.click()
    page.get_by_placeholder("What instead?").fill("OAuth with our own server")
    say(page, "Send")
    sent(page)
    assert web.desk.show(web.q["choice"])["response"]["value"] == "OAuth with our own server"


@ways
def test_edit_first_shows_both_versions(web, visit, width, js):
    q = web.q["permission"]
    page = visit("ana", f"/questions/{q}", width=width, js=js)
    page.get_by_role("link", name="Edit first").click()
    page.get_by_label("command").fill("alembic upgrade head")
    say(page, "Show my version")
    expect(page.get_by_role("heading", name="Allow this instead?")).to_be_visible()
    assert page.locator("pre.cmd").count() == 2
    digests = [page.locator(".digest").nth(at).get_attribute("data-copy") for at in (0, 1)]
    before = web.desk.show(q)
    assert before["status"] == "pending" and digests[0] == before["digest"] != digests[1]
    say(page, "Allow this once")
    sent(page)
    response = web.desk.show(q)["response"]
    assert response["digest"] == digests[1] and response["value"]["input"] == {"command": "alembic upgrade head", "timeout": 120}
    assert response["value"]["tool"] == "Bash"
    expect(page.get_by_text("Changed to this")).to_be_visible()


@ways
def test_cancelling_a_task_asks_first(web, visit, width, js):
    q = web.q["choice"]
    page = visit("ana", f"/questions/{q}", width=width, js=js)
    page.get_by_role("link", name="Cancel task").click()
    expect(page.get_by_text("Cancel API-5?")).to_be_visible()
    expect(page.locator(".ending")).to_contain_text("API-6 and API-7 stop waiting for it")
    assert web.desk.show(q)["status"] == "pending"
    page.get_by_label("Why").fill("We buy it instead.")
    page.get_by_role("button", name="Cancel task API-5").click()
    sent(page, "API-5 is cancelled.")
    assert web.desk.show("API-5")["reason"] == "We buy it instead."


@ways
def test_invalid_answer_leaves_the_question_open(web, visit, width, js):
    page = visit("ana", f"/questions/{web.q['approval']}", width=width, js=js)
    say(page, "Send back")
    expect(page.locator(".answer .wrong")).to_contain_text("What should change?")
    assert web.desk.show(web.q["approval"])["status"] == "pending"
    add_words(page, "The contrast of the links.")
    say(page, "Send back")
    sent(page)
    assert web.desk.show(web.q["approval"])["response"]["verdict"] == "rejected"
    if not js:
        page.goto(f"{web.url}/questions/{web.q['choice']}")
        say(page, "Send")
        expect(page.get_by_text("Choose one of: Sessions, JWT")).to_be_visible()
        assert web.desk.show(web.q["choice"])["status"] == "pending"


@pytest.mark.parametrize("width", [800, 390])  # no pane beside the list
@pytest.mark.parametrize("js", [True, False], ids=["js", "plain"])
def test_quick_answer_is_chosen_then_sent(web, visit, width, js):
    page = visit("ana", width=width, js=js)
    row = page.locator(f".row[data-id={web.q['approval']}]")
    assert page.locator(f".row[data-id={web.q['permission']}] .quick").count() == 0
    assert page.locator(f".row[data-id={web.q['recovery']}] .quick").count() == 0
    row.get_by_text("Approve", exact=True).click()
    assert web.desk.show(web.q["approval"])["status"] == "pending", "one tap only chooses"
    row.get_by_role("button", name="Approve and finish WEB-1").click()
    sent(page, "You approved this" if js else "WEB-1 is done")
    assert web.desk.show("WEB-1")["state"] == "done"
    kept = page.locator(f".row[data-id={web.q['nonblocking']}]")
    kept.get_by_text("Keep “British”").first.click()
    kept.get_by_role("button", name="Keep “British”").click()
    sent(page, "You answered “British”" if js else "writer is notified")


@ways
def test_question_of_a_run_names_the_script(web, visit, width, js):
    """In a run no answer ends the task, and the labels name the script."""
    desk = web.desk
    run = desk.create("Release", workflow="flows/feature.py", project="OPS")["key"]
    q = desk.ask(run, "Approve deployment?", "approval", on_timeout="keep")["id"]
    page = visit("ana", f"/questions/{q}", width=width, js=js)
    expect(page.get_by_role("button", name="Continue")).to_contain_text("feature.py goes on")
    stop = page.get_by_role("button", name="Stop here")
    expect(stop).to_contain_text("feature.py gets the no and decides")
    assert "ancel" not in page.locator(".answer").inner_text()
    stop.click()
    sent(page)
    assert desk.show(run)["state"] != "cancelled" and desk.show(q)["response"]["verdict"] == "rejected"


@ways
def test_reserved_gate_names_the_approvers(web, visit, width, js):
    web.desk.set("approvals", "approvers", "API")
    page = visit("chidi", f"/questions/{web.q['permission']}", width=width, js=js)
    expect(page.get_by_text("Only approvers can allow this. Ask ana or ben.")).to_be_visible()
    assert page.locator(".answer button").count() == 0
    page = visit("vera", f"/questions/{web.q['choice']}", width=width, js=js)
    expect(page.get_by_text("You can look, but not answer.")).to_be_visible()
    page = visit("ben", f"/questions/{web.q['permission']}", width=width, js=js)
    say(page, "Deny")
    sent(page, "You denied this")


@ways
def test_batch_of_answers(web, visit, width, js):
    page = visit("ana", width=width, js=js)
    if js and width == 390:
        page.get_by_role("button", name="Select").click()
    for name in ("approval", "checkpoint"):
        row = page.locator(f".row[data-id={web.q[name]}]")
        row.hover()
        row.locator(".pick").check()
    assert page.locator(f".row[data-id={web.q['choice']}] .pick").count() == 0, "it needs a choice"
    if js:
        expect(page.locator(".pickbar")).to_contain_text("2 selected")
    page.get_by_role("button", name=re.compile("Preview")).click()
    expect(page.get_by_role("heading", name="Answer 2 together")).to_be_visible()
    web.as_("human:ben").approve(web.q["checkpoint"])
    say(page, "Approve both")
    expect(page.get_by_role("heading", name="1 sent")).to_be_visible()
    expect(page.locator(".alert", has_text="ben was faster: let it continue, just now.").first).to_be_visible()
    assert web.desk.show("WEB-1")["state"] == "done" and web.desk.show(web.q["choice"])["status"] == "pending"
