"""A button acts only on the version that its page showed; on an old page it reports the change, its actor and time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.web.conftest import live, ways, widths
from tests.web.test_answer_form import say, sent
from tests.web.test_concurrent_people import deaf
from tests.web.test_pages import Caller
from tests.web.test_sending_answers import PAUSE, bad_gateway, fails, reply_is_lost, unsent


def hands_over(web: Any, task: str, worker: str = "w9") -> str:
    """ben hands the task back, a worker takes it and asks for something else. Returns that question."""
    web.as_("human:ben").hand_back(task)
    coder = web.as_("agent:coder")
    claim = coder.claim(task, worker)["claim"]
    action = {"tool": "Bash", "input": {"command": "drop table"}}
    return str(coder.ask(task, "Delete the table?", "permission", claim=claim, action=action)["id"])


@ways
def test_hand_back_on_a_closed_question_leaves_the_next_one_alone(web, visit, width, js):
    q = web.q["work"]
    task = web.desk.show(q)["task"]
    page = visit("chidi", f"/questions/{q}", width=width, js=js)
    if js:
        deaf(page)
    other = hands_over(web, task)
    say(page, "Hand back to agents")
    if js:
        expect(unsent(page)).to_contain_text(f"Too late. {q} is not asked any more")
        page.get_by_role("button", name="What now?").click()
    expect(page.locator(".alert")).to_contain_text("is not asked any more")
    assert web.desk.show(other)["status"] == "pending" and web.desk.show(task)["state"] == "human"


@ways
def test_cancel_task_on_a_closed_question_cancels_nothing(web, visit, width, js):
    q = web.q["work"]
    task = web.desk.show(q)["task"]
    page = visit("chidi", f"/questions/{q}/cancel", width=width, js=js)
    if js:
        deaf(page)
    web.as_("human:ben").hand_back(task)
    web.as_("agent:coder").claim(task, "w9")
    page.get_by_role("button", name=f"Cancel task {task}").click()
    if js:
        expect(unsent(page).locator(".what")).to_have_text(f"Cancel task {task}")
        page.get_by_role("button", name="What now?").click()
    expect(page.locator(".alert")).to_contain_text("is not asked any more")
    assert web.desk.show(task)["state"] == "working"


@ways
def test_hand_back_does_not_withdraw_an_unseen_question(web, visit, width, js):
    q = web.q["work"]
    task = web.desk.show(q)["task"]
    page = visit("chidi", f"/questions/{q}", width=width, js=js)
    if js:
        deaf(page)
    other = web.as_("agent:writer").ask(task, "In colour?", blocking=False, default="no", on_timeout="keep")["id"]
    say(page, "Hand back to agents")
    expect(page.locator(".wrong")).to_contain_text(f"{task} has changed since this page was drawn: writer asked {other}, just now.")
    expect(page.get_by_role("link", name=f"{other} is open too")).to_be_visible()
    assert web.desk.show(q)["status"] == web.desk.show(other)["status"] == "pending"
    say(page, "Hand back to agents")  # the new page shows it
    sent(page, f"Sent. Agents take {task} again.")
    assert web.desk.show(task)["state"] == "ready"


@widths
def test_a_hand_back_whose_reply_was_lost_counts_once(web, visit, width):
    q = web.q["work"]
    page = live(visit("chidi", f"/questions/{q}", width=width))
    lost: list[Route] = []

    def lose(route: Route) -> None:
        lost.append(route)
        (reply_is_lost if len(lost) == 1 else Route.continue_)(route)

    page.route("**/questions/*/back", lose)
    say(page, "Hand back to agents")
    sent(page, f"Sent {q}. Agents take DOC-3 again.")
    assert len(lost) == 2
    assert [e["action"] for e in web.desk.history("DOC-3")].count("hand_back") == 1


@ways
def test_a_move_of_an_old_page_is_refused_with_actor_and_time(web, visit, width, js):
    task = web.desk.show(web.q["boolean"])["task"]
    page = visit("chidi", f"/tasks/{task}/cancel", width=width, js=js)
    web.as_("human:ben").answer(web.q["boolean"], "yes")
    web.clock.advance(minutes=3)
    page.get_by_role("button", name=f"Cancel task {task}").click()
    expect(page.get_by_role("heading", name=f"{task} has changed since this page was drawn")).to_be_visible()
    expect(page.locator("main")).to_contain_text(f"ben answered {web.q['boolean']}, 3 min ago. Nothing was done.")
    assert web.desk.show(task)["state"] == "ready"
    page.get_by_role("link", name="Back").click()
    expect(page).to_have_url(f"{web.url}/tasks/{task}")


def test_cancelling_after_an_approval_names_the_approver_and_the_time(web, visit):
    page = visit("chidi", "/tasks/WEB-1/cancel")
    web.as_("human:ben").approve(web.q["approval"])
    page.get_by_role("button", name="Cancel task WEB-1").click()
    expect(page.locator("main")).to_contain_text(f"ben approved {web.q['approval']}, just now. Nothing was done.")
    assert web.desk.show("WEB-1")["state"] == "done"


def test_hand_back_of_an_old_task_page_leaves_the_next_question_alone(web, visit):
    task = web.desk.show(web.q["work"])["task"]
    page = deaf(visit("chidi", f"/tasks/{task}"))
    other = hands_over(web, task)
    page.locator("details.moves > summary").click()
    page.get_by_role("button", name="Hand back to agents").click()
    expect(page.locator("main")).to_contain_text(f"coder asked {other}, just now. Nothing was done.")
    assert web.desk.show(other)["status"] == "pending"


def test_heartbeat_and_note_do_not_outdate_a_page(web, visit):
    coder = web.as_("agent:coder")
    task = web.desk.create("Tidy up", project="API")["key"]
    claim = coder.claim(task, "w9")["claim"]
    page = visit("chidi", f"/tasks/{task}/cancel")
    seen = web.desk.show(task)["version"]
    coder.heartbeat(claim)
    coder.note(task, "half of it")
    assert web.desk.show(task)["version"] > seen
    page.get_by_role("button", name=f"Cancel task {task}").click()
    expect(page.get_by_text("Cancelled.")).to_be_visible()
    assert web.desk.show(task)["state"] == "cancelled"


def test_a_form_that_is_sent_twice_moves_once(web):
    ana = Caller(web)
    text = ana.text("/tasks/WEB-2/cancel")
    form = {name: re.findall(rf'name="{name}" value="([^"]*)"', text)[-1] for name in ("key", "as_of")}
    assert [ana.post("/tasks/WEB-2/cancel", **form).status for _ in range(2)] == [303, 303]
    assert ana.post("/tasks/WEB-2/cancel", as_of=form["as_of"]).status == 412
    new = web.desk.create("Tidy up", project="WEB")["key"]
    assert ana.post(f"/tasks/{new}/cancel").status == 412 and web.desk.show(new)["state"] == "ready", "without what it showed"


# --- edit first -------------------------------------------------------------------------------------------------------


@widths
@pytest.mark.parametrize("step", ["edit", "version"])
def test_edit_first_has_no_live_buttons_once_the_question_is_closed(web, visit, width, step):
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}/edit", width=width))
    page.get_by_label("command").fill("alembic upgrade head")
    if step == "version":
        say(page, "Show my version")
        expect(page.get_by_role("heading", name="Allow this instead?")).to_be_visible()
        live(page)
    web.as_("human:ben").reject(q)
    expect(page.locator(".say")).to_have_count(0)
    expect(page.locator(".alert")).to_contain_text("ben denied this.")


def test_a_version_of_a_closed_permission_is_not_offered(web):
    q, ana = web.q["permission"], Caller(web)
    web.as_("human:ben").reject(q)
    reply = ana.post(f"/questions/{q}/edit", arg0="alembic upgrade head", arg1="120")
    assert reply.status == 303 and reply.headers["location"] == f"/questions/{q}"


@widths
def test_an_edited_permission_whose_request_failed_is_sent_again(web, visit, width):
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}/edit", width=width))
    page.get_by_label("command").fill("alembic upgrade head")
    say(page, "Show my version")
    expect(page.get_by_role("heading", name="Allow this instead?")).to_be_visible()
    page.evaluate(PAUSE)
    fails(page, 1, bad_gateway)
    say(page, "Allow this once")
    expect(unsent(page).locator(".what")).to_have_text("Allow this once\n“alembic upgrade head”")
    expect(page.locator(".say.go kbd")).to_have_text("a")  # the button is unchanged
    unsent(page).get_by_role("button", name="Try now").click()
    sent(page, f"Sent {q}.")
    assert web.desk.show(q)["response"]["value"]["input"]["command"] == "alembic upgrade head"
