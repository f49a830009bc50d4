"""The board, the task list, the form of a new task and the task page, with and without JavaScript, on a desk and on a phone."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import live, ways, widths
from tests.web.sample_work import AGENTS, NASTY, RELEASE, nasty
from tests.web.test_answer_form import add_words
from tests.web.test_pages import Caller
from yourturn.core.model import Who
from yourturn.testing import Stage, done
from yourturn.web.task_actions import ACTIONS

PAGES = (
    "/tasks",
    "/tasks?view=list",
    "/tasks/new",
    "/tasks/API-1",
    "/tasks/API-1/log",
    "/tasks/API-1/cancel",
    "/activity",
    "/stats",
    "/settings",
)


#: Open menus that exceed the window.
MENUS = """() => [...document.querySelectorAll("main details.menu")].filter(menu => {
  menu.open = true;
  const box = menu.lastElementChild.getBoundingClientRect();
  menu.open = false;
  return box.width && (box.left < 0 || box.right > document.documentElement.clientWidth);
}).map(menu => menu.textContent.trim().slice(0, 40))"""


def fits(page: Page) -> None:
    """No horizontal scrolling."""
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), page.url


def test_every_page_fits_and_has_one_heading(visit, web):
    page = visit("ana")
    for path in PAGES:
        assert page.goto(web.url + path).status == 200, path
        assert page.locator("h1").count() == 1 and page.locator("main").count() == 1, path
        nameless = page.locator("main :is(input:not([type=hidden]), select, textarea)").evaluate_all(
            "all => all.filter(e => !e.labels.length && !e.getAttribute('aria-label')).map(e => e.name)"
        )
        assert nameless == [], path
        ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert len(ids) == len(set(ids)), path
        for width in (1280, 390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            fits(page)
            assert page.evaluate(MENUS) == [], (path, width)


@ways
def test_board_has_a_lane_for_each_state(web, visit, width, js):
    page = visit("ana", "/tasks", width=width, js=js)
    human = page.locator(".lane.you")
    count = sum(web.as_("human:ana").counts(project=key).get("human", 0) for key in ("API", "WEB", "OPS", "DOC"))
    expect(human.locator("summary")).to_contain_text("Needs human")
    expect(human.locator("summary .count")).to_have_text(str(count))
    first = human.locator(".tcard").first
    expect(first).to_contain_text("Nightly backup")
    expect(first).to_contain_text("Recovery: The upload failed")
    expect(first.locator(".left")).to_contain_text("left")
    blocked = page.locator("[data-lane=blocked]")
    if width == 390 and js:
        expect(blocked.locator("ul")).to_be_hidden()
        blocked.locator("summary").click()
    expect(blocked.locator(".tcard").first).to_contain_text("waits for API-1")
    if width == 390:
        top = {name: page.locator(f"[data-lane={name}]").bounding_box()["y"] for name in ("human", "ready")}
        assert top["human"] < top["ready"], "who needs a person stands first"
    human.get_by_role("link", name="Nightly backup").click()
    expect(page.locator("h1")).to_have_text("Nightly backup to cold storage")


@ways
def test_empty_board_explains_the_next_step(web, visit, width, js):
    web.desk.create_project("NEW", "Nothing yet")
    page = visit("chidi", "/tasks?project=NEW", width=width, js=js)
    expect(page.get_by_role("heading", name="Nothing to do in NEW")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="New task").last.click()
    expect(page.get_by_label("Project")).to_have_value("NEW")
    page.goto(f"{web.url}/stats?project=NEW")
    expect(page.get_by_role("heading", name="Nothing to draw yet")).to_be_visible()


@ways
def test_a_list_is_filtered_searched_and_paged(web, visit, width, js):
    for n in range(60):
        web.desk.create(f"Chore number {n}", project="DOC", type="chore", priority=4)
    page = visit("ana", "/tasks?view=list", width=width, js=js)
    rows = page.locator(".tlist > li")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("Chore number 59")
    page.get_by_role("link", name="Older").click()
    expect(rows.first).to_contain_text("Chore number 9")
    page.get_by_role("link", name="Newest").click()
    page.get_by_label("Search tasks").fill("PAYMENTS")
    page.get_by_label("Search tasks").press("Enter")
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="Remove filter “PAYMENTS”").click()
    page.locator(".filter > summary").click()
    page.locator(".filter").get_by_role("link", name="Blocked").click()
    expect(page.locator(".tlist .tag").first).to_contain_text("Blocked")
    assert {tag.inner_text() for tag in page.locator(".tlist .tag").all()} == {"Blocked"}
    page.get_by_label("Search tasks").fill("no such thing at all")
    page.get_by_label("Search tasks").press("Enter")
    expect(page.get_by_role("heading", name="Nothing fits")).to_be_visible()


@ways
def test_new_task_form(web, visit, width, js):
    page = visit("chidi", "/tasks", width=width, js=js)
    page.get_by_role("link", name="New task").click()
    page.get_by_label("What is to be done?").fill("Paint the <shed>")
    page.get_by_label("Description").fill("Red.\nTwice.")
    page.get_by_label("Project").select_option("DOC")
    page.get_by_label("Priority").select_option("1")
    page.get_by_label("Waits for").fill("API-1, NOPE-9")
    page.get_by_role("button", name="Create task").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no task NOPE-9")
    expect(page.get_by_label("Description")).to_have_value("Red.\nTwice.")
    page.get_by_label("Waits for").fill("API-1")
    page.get_by_role("button", name="Create task").click()
    expect(page.locator("h1")).to_have_text("Paint the <shed>")
    key = page.url.rpartition("/")[2]
    task = web.desk.show(key)
    assert task["description"] == "Red.\nTwice." and task["priority"] == 1 and task["depends_on"] == ["API-1"]
    assert task["created_by"] == "human:chidi" and task["state"] == "blocked"


@ways
def test_task_page_shows_all_facts(web, visit, width, js):
    page = visit("ana", "/tasks/API-5", width=width, js=js)
    expect(page.locator(".waits")).to_contain_text("JWT or server sessions for the login?")
    expect(page.locator("#questions")).to_contain_text("Web now, mobile in autumn. No third parties.")
    expect(page.locator("#questions")).to_contain_text("Went on with the default “No”.")
    expect(page.locator("#log")).to_contain_text("pytest -q: 41 passed in 12.8 s")
    graph = page.locator("svg.graph")
    title = graph.locator("title").text_content()
    assert "API-6 depends on API-5 (needs human)." in title and "API-7 depends on API-5" in title
    assert graph.locator("g.here").count() == 1 and graph.locator("g.wait").count() == 1 and graph.locator("g.open").count() == 1
    expect(page.locator("#events")).to_contain_text("architect asked")
    page.get_by_role("textbox", name="Note").fill("Ask the <b>mobile</b> team.")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator("#notes")).to_contain_text("Ask the <b>mobile</b> team.")
    assert web.desk.show("API-5")["notes"][-1]["author"] == "human:ana"
    page.get_by_role("link", name="Answer").click()
    expect(page.locator("h1")).to_contain_text("JWT or server sessions")


def test_moves_are_those_of_the_rules(web):
    for key, name in (("API-1", "ana"), ("API-4", "chidi"), ("WEB-4", "ben"), ("DOC-3", "ana")):
        role = {"ana": "admin", "chidi": "member", "ben": "approver"}[name]
        may = web.desk.as_(Who(f"human:{name}", role)).moves(key)
        shown = re.findall(rf'(?:href|action)="/tasks/{key}/(\w+)"', Caller(web, name).text(f"/tasks/{key}"))
        wanted = [verb for verb in ACTIONS if verb in may and not set(ACTIONS[verb].over) & set(may)]
        assert sorted(verb for verb in shown if verb in ACTIONS) == sorted(wanted) and wanted, key


@ways
def test_ending_a_task_asks_first(web, visit, width, js):
    page = visit("ana", "/tasks/API-1", width=width, js=js)
    page.locator(".moves > summary").click()
    page.get_by_role("link", name="Cancel task…").click()
    expect(page.locator(".ending")).to_contain_text("1 open question is cancelled.")
    expect(page.locator(".ending")).to_contain_text("API-2, API-3 no longer wait for it.")
    assert web.desk.show("API-1")["state"] == "human", "nothing has happened yet"
    page.get_by_label("Why? (optional)").fill("Not needed")
    page.get_by_role("button", name="Cancel task API-1").click()
    expect(page.get_by_role("status").filter(has_text="Cancelled.")).to_be_visible()
    assert web.desk.show("API-1")["state"] == "cancelled" and web.desk.show("API-1")["reason"] == "Not needed"
    page.locator(".moves > summary").click()
    page.get_by_role("link", name="Reopen…").click()
    page.get_by_role("button", name="Reopen API-1").click()
    assert web.desk.show("API-1")["state"] == "created"
    page.get_by_role("button", name="Vet", exact=True).click()
    expect(page.locator(".task-top .tag")).to_have_text("Ready")
    page.locator(".moves > summary").click()
    page.get_by_role("link", name="Put aside…").click()
    page.get_by_label(re.compile("Until when")).fill("2d")
    page.get_by_role("button", name="Put API-1 aside").click()
    expect(page.locator(".task-top .tag")).to_have_text("Deferred")


@ways
def test_ending_a_task_reports_follow_ups(web, visit, width, js):
    ana = web.as_("human:ana")
    first, other = ana.create("First")["key"], ana.create("Other")["key"]
    freed, asked = ana.create("Freed", depends_on=[first])["key"], ana.create("Asked", depends_on=[other])["key"]
    page = visit("ana", f"/tasks/{first}/cancel", width=width, js=js)
    page.get_by_role("button", name=f"Cancel task {first}").click()
    expect(page.get_by_role("status").filter(has_text=f"Cancelled. {freed} is ready now.")).to_be_visible()
    page.goto(f"{web.url}/tasks/{other}/stop")
    page.get_by_role("button", name=f"Stop {other}").click()
    question = web.desk.show(asked)["questions"][0]["id"]
    expect(page.get_by_role("status").filter(has_text=f"Stopped. {asked} waits for a person now: {question}.")).to_be_visible()


@ways
def test_answer_that_ends_a_task_reports_follow_ups(web, visit, width, js):
    ana = web.as_("human:ana")
    key = ana.create("Theme")["key"]
    freed = ana.create("Freed", depends_on=[key])["key"]
    id = web.ask("Sign off?", "approval", task=key)
    page = visit("ana", f"/questions/{id}", width=width, js=js)
    page.get_by_role("button", name=re.compile("^Approve and finish")).click()
    expect(page.locator("main")).to_contain_text(f"Sent. {key} is done. {freed} is ready now.")


@ways
def test_work_is_sent_back_with_a_reason(web, visit, width, js):
    page = visit("ben", "/tasks/WEB-4", width=width, js=js)
    page.locator(f"main a[href*='{web.q['finished']}']").first.click()
    add_words(page, "Softer words.")
    page.get_by_role("button", name=re.compile("^Send back")).click()
    expect(page.locator("main")).to_contain_text("You sent this back")
    assert web.desk.show("WEB-4")["state"] == "ready" and "Softer words." in str(web.desk.show("WEB-4"))


def test_viewer_gets_no_buttons(web):
    vera, before = Caller(web, "vera"), web.desk.show("API-1")
    for path in ("/tasks", "/tasks?view=list", "/tasks/API-1", "/tasks/WEB-4", "/activity", "/stats"):
        main = vera.text(path).partition("<main")[2]
        assert main and 'method="post"' not in main and "/tasks/new" not in main and ">Answer<" not in main, path
    for path in ("/tasks/new", "/tasks/API-1/cancel"):
        assert vera.get(path).status == 403, path
    for path in ("/tasks/new", "/tasks/API-1/note", *(f"/tasks/API-1/{verb}" for verb in ACTIONS)):
        assert vera.post(path, title="x", text="x").status == 403, path
    assert web.desk.show("API-1") == before


def test_a_page_of_another_site_changes_nothing(web):
    ana = Caller(web)
    for path in ("/tasks/new", "/tasks/API-1/note", "/tasks/API-1/cancel", "/settings/token", "/settings/member"):
        assert ana.post(path, csrf="0" * 64, title="x", text="x").status == 403
    assert web.desk.show("API-1")["state"] == "human"


def test_markup_in_a_task_is_shown_as_text(web, visit):
    keys = nasty(web.as_("human:ana"))
    page = visit("ana")
    dialogs: list[str] = []
    page.once("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for path in (
        f"/tasks/{keys['task']}",
        f"/tasks/{keys['below']}",
        f"/tasks/{keys['done']}",
        f"/tasks/{keys['task']}/log",
        f"/tasks/{keys['task']}/cancel",
        "/tasks",
        "/tasks?view=list",
        "/activity",
    ):
        assert page.goto(web.url + path).status == 200, path
        assert page.locator("img, svg[onload], [onerror], [onmouseover], [onload]").count() == 0, path
        assert page.locator("script:not([src])").count() == 0, path
        assert page.locator("a[href^='javascript']").count() == 0
        fits(page)
    page.goto(f"{web.url}/tasks/{keys['task']}")
    for text in NASTY[:7]:
        expect(page.locator(".notes").get_by_text(text, exact=True)).to_be_visible()
    expect(page.locator(".notes .ctl").first).to_have_text("U+202E")
    for path in (
        "/tasks?search={}",
        "/tasks?project={}",
        "/tasks?state={}",
        "/tasks?after={}",
        "/activity?actor={}",
        "/activity?task={}",
        "/activity?before={}",
        "/stats?project={}",
        "/stats?range={}",
        "/settings?saved={}&project={}",
        "/tasks/{}",
    ):
        for text in (NASTY[0], NASTY[1], "%00", "a" * 300):
            answer = page.request.get(web.url + path.replace("{}", text if text == "%00" else text.replace("/", "%2F")))
            assert answer.status < 500, (path, text)
            assert "<script>alert" not in answer.text() and "<img src=x" not in answer.text()
    assert not dialogs


@widths
def test_a_run_shows_its_steps_and_goes_on(web, visit, width):
    desk = web.as_("human:ana")
    stage = Stage(RELEASE, {**AGENTS, "keeper": [done("It is out")]}, desk=desk, clock=web.clock, file="release.py")
    stage.run("Release 2.4")
    stage.answer("For a year")
    page = live(visit("ana", f"/tasks/{stage.key}", width=width))
    steps = page.locator("#steps li")
    assert steps.locator("b").all_text_contents() == ["#1 architect, done", "#2 coder, done", "#3 log, done", "#4 pause, waits"]
    expect(steps.nth(1)).to_contain_text("Built, 312 tests pass")
    expect(page.locator(".waits")).to_contain_text("Publish 2.4 to everybody?")
    assert "went" not in page.locator("#events").inner_text(), "steps are told once"
    stage.approve("go ahead")
    expect(page.locator(".task-top .tag")).to_have_text("Done")
    expect(steps.nth(4)).to_contain_text("It is out")
    page.goto(f"{web.url}/activity?task={stage.key}")
    expect(page.get_by_text("3 steps recorded")).to_be_visible()


# --- live -------------------------------------------------------------------------------------------------------------


@widths
def test_a_log_is_followed_until_the_reader_scrolls(web, visit, width):
    agent = web.as_("agent:coder")
    key = web.desk.create("Talk a lot", project="API")["key"]
    claim = agent.claim(key, "coder")["claim"]
    agent.write_output(claim, [("said", f"line {n}") for n in range(60)])
    page = live(visit("ana", f"/tasks/{key}", width=width))
    log = page.locator("#log .log")
    expect(page.locator("[data-following]")).to_be_visible()
    below = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
    assert log.evaluate(below) < 5
    agent.write_output(claim, [("said", "the newest <b>line</b>")])
    expect(log).to_contain_text("the newest <b>line</b>")
    assert log.evaluate(below) < 5
    log.evaluate("e => { e.scrollTop = 0; }")
    agent.write_output(claim, [("said", "one more")])
    expect(log).to_contain_text("one more")
    assert log.evaluate("e => e.scrollTop") == 0, "whoever reads stays where they are"


@widths
def test_task_page_is_updated_live(web, visit, width):
    page = live(visit("ana", "/tasks/API-5", width=width))
    page.get_by_role("textbox", name="Note").fill("A draft")
    web.as_("human:ben").answer(web.q["choice"], "jwt")
    expect(page.locator("#questions")).to_contain_text("ben answered “JWT”")
    expect(page.locator(".waits")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Note")).to_have_value("A draft")


@widths
def test_board_counts_changes_without_moving(web, visit, width):
    page = live(visit("ana", "/tasks", width=width))
    before = page.locator(".board").inner_text()
    web.as_("human:ben").answer(web.q["choice"], "jwt")
    pill = page.get_by_role("button", name=re.compile("change"))
    expect(pill).to_be_visible()
    box, first = pill.bounding_box(), page.locator(".lane.you > summary").bounding_box()
    assert box["y"] > first["y"] + first["height"], "the title of the first lane is not covered"
    strip = re.compile(r"\d+:\d+ left")
    assert strip.sub("", page.locator(".board").inner_text()) == strip.sub("", before)
    pill.click()
    expect(page.locator(".lane.you").get_by_text("Login for the public API")).to_have_count(0)


@widths
def test_reload_shows_progress_without_javascript(web, visit, width):
    agent = web.as_("agent:coder")
    key = web.desk.create("Talk a lot", project="API")["key"]
    claim = agent.claim(key, "coder")["claim"]
    page = visit("ana", f"/tasks/{key}", width=width, js=False)
    agent.write_output(claim, [("said", "the newest <b>line</b>")])
    agent.complete(claim, "Said it")
    page.get_by_role("link", name="Reload").click()
    expect(page.locator("#log")).to_contain_text("the newest <b>line</b>")
    expect(page.locator(".task-top .tag")).to_have_text("Done")
    page.goto(f"{web.url}/tasks")
    web.as_("human:ben").answer(web.q["choice"], "jwt")
    page.get_by_role("link", name="Reload").click()
    expect(page.locator(".lane.you").get_by_text("Login for the public API")).to_have_count(0)
