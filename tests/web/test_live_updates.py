"""Live updates of open pages: new questions, answers of other people, a restart, a lost network."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import live, until, ways, widths
from tests.web.test_answer_form import say, sent


def count(page: Page, number: int) -> None:
    expect(page.locator(".nav [data-waiting]")).to_have_text(str(number))
    expect(page).to_have_title(re.compile(rf"^\({number}\)"))


def answer_all(web) -> None:
    """Closes all open questions."""
    for name, q in web.q.items():
        if name == "finished":
            web.desk.approve(q)
        else:
            web.desk.withdraw(q)


@widths
def test_new_question_beside_a_list_shows_a_pill(web, visit, width):
    page = live(visit("ana", width=width))
    count(page, 11)
    page.evaluate(
        "() => { const now = performance.now.bind(performance); performance.now = () => now() + 5000; }"
    )  # the rows stay in place
    order = page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)")
    web.ask(
        "Delete the old bucket?", "permission", action={"tool": "Bash", "input": {"command": "aws s3 rb s3://old"}, "folder": "."}
    )
    expect(page.get_by_role("button", name="1 new question")).to_be_visible()
    expect(page.locator("#live")).to_have_text("New permission from coder, API-4")
    count(page, 12)
    assert page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)") == order, "nothing moves"
    expect(page.locator(".toast")).to_have_count(1 if width > 1000 else 0)  # on a phone the pill is enough
    expect(page.locator("dialog[open]")).to_have_count(0)


@widths
def test_a_question_opens_as_a_sheet_on_the_page_of_its_task(web, visit, width):
    page = live(visit("ana", "/tasks/API-4", width=width))
    web.ask("What about another task?", task="API-7", response_type="boolean")
    expect(page.locator(".toast")).to_contain_text("What about another task?")
    web.ask("Is it fine to go on?", options=["yes", "no"], default="yes", blocking=False)
    count(page, 13)
    expect(page.locator("dialog[open]")).to_have_count(0)
    q = web.ask(
        "Delete the old bucket?", "permission", action={"tool": "Bash", "input": {"command": "aws s3 rb s3://old"}, "folder": "."}
    )
    sheet = page.locator("dialog.sheet")
    expect(sheet.get_by_role("heading", name="Delete the old bucket?")).to_be_visible()
    until(page, "!document.querySelector('dialog.sheet').inert")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    page.locator("#note").focus()
    second = web.ask("And the new one?", response_type="boolean")
    count(page, 15)
    expect(sheet).to_have_count(0)  # a field has the focus
    assert web.desk.show(q)["status"] == web.desk.show(second)["status"] == "pending"


@widths
def test_empty_inbox_shows_a_new_question(web, visit, width):
    answer_all(web)
    page = live(visit("ana", width=width))
    expect(page.get_by_role("heading", name="It's not your turn")).to_be_visible()
    q = web.ask("Which logo?", options=["round", "square"])
    sheet = page.locator("dialog.sheet")
    expect(sheet.get_by_role("heading", name="Which logo?")).to_be_visible()
    expect(page.locator(f".row[data-id={q}]")).to_have_count(1)
    expect(page.locator(f"form.q[data-q={q}]")).to_have_count(1)  # only in the sheet, not in the pane
    until(page, "!document.querySelector('dialog.sheet').inert")
    page.keyboard.press("Escape")
    expect(page.locator(f".row[data-id={q}]")).to_be_visible()
    if width > 1000:
        expect(page.locator(f"[data-pane] form[data-q={q}] .say").first).to_be_visible()
    second = web.ask("Which colour?", options=["red", "blue"])
    expect(page.get_by_role("button", name="1 new question")).to_be_visible()  # a list does not move
    expect(page.locator(f".row[data-id={second}]")).to_have_count(0)
    expect(sheet).to_have_count(0)


@widths
def test_empty_inbox_catches_up_after_a_lost_event(web, visit, width):
    """Questions that are asked before the page is live, or while its tab sleeps."""
    answer_all(web)
    page = visit("ana", "/stats", width=width)
    page.route("**/api/events*", lambda route: route.abort())
    page.goto(f"{web.url}/inbox")
    expect(page.get_by_role("heading", name="It's not your turn")).to_be_visible()
    q = web.ask("Is it fine to go on?", options=["yes", "no"], default="yes", blocking=False)
    page.unroute_all()
    expect(page.locator(f".row[data-id={q}]")).to_be_visible()
    expect(page.locator("dialog[open], .toast")).to_have_count(0)


@widths
def test_sheet_ignores_input_at_first(web, visit, width):
    page = live(visit("ana", "/tasks/API-4", width=width))
    page.evaluate("""() => {
        const later = window.setTimeout;
        window.setTimeout = (run, ms, ...more) => ms === 600 ? (window.wakeUp = run, 0) : later(run, ms, ...more);
    }""")
    q = web.ask("Really?", "approval")
    button = page.locator("dialog.sheet .say.go")
    expect(button).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    button.click(force=True)
    assert web.desk.show(q)["status"] == "pending"
    page.evaluate("() => { window.wakeUp(); }")
    button.click()
    expect(page.locator("dialog.sheet")).to_have_count(0)
    sent(page, "Sent. API-4 is done.")
    assert web.desk.show(q)["status"] == "answered"


@widths
def test_toast_takes_no_focus(web, visit, width):
    page = live(visit("ana", f"/questions/{web.q['text']}", width=width))
    field = page.get_by_label("Your answer")
    field.focus()
    q = web.ask("Which logo?", options=["round", "square"])
    toast = page.locator(".toast")
    if width > 1000:
        expect(toast).to_contain_text("Which logo?")
    else:
        expect(page.locator("#live")).to_have_text("New choice from coder, API-4")
        expect(toast).to_have_count(0)  # the toast would cover the text
        field.blur()
        expect(toast).to_contain_text("Which logo?")
        field.focus()
    assert page.evaluate("document.activeElement.name") == "value"
    covers = """toast => [...document.querySelectorAll('.field, .answer')].some(at => { const a = at.getBoundingClientRect(),
        b = toast.getBoundingClientRect(); return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom; })"""
    assert not toast.evaluate(covers), "it covers neither the field nor the answers"
    web.as_("human:ben").answer(q, "round")
    expect(toast).to_have_count(0)  # an answer clears it on all pages
    field.blur()
    page.evaluate("""() => {
        const later = window.setTimeout;
        window.setTimeout = (run, ms, ...more) => ms === 8000 ? (window.goAway = run, 0) : later(run, ms, ...more);
    }""")
    web.ask("Which name?", response_type="text")
    expect(toast).to_contain_text("Which name?")
    page.mouse.move(600, 300)
    page.evaluate("() => { window.goAway(); }")
    expect(toast).to_have_count(0)  # it disappears by itself
    for text in ("Which size?", "Which colour?"):
        second = web.ask(text, options=["red", "blue"])
        expect(toast).to_contain_text(text)
    expect(toast).to_have_count(1)
    page.locator(".toast").get_by_role("link", name="Answer").click()
    sheet = page.locator("dialog.sheet")
    sheet.get_by_text("blue", exact=True).click()
    sheet.get_by_role("button", name="Send “blue”").click()
    expect(sheet).to_have_count(0)
    sent(page)
    assert web.desk.show(second)["response"]["value"] == "blue"


@widths
def test_question_for_others_or_of_low_urgency_is_only_counted(web, visit, width):
    web.desk.set_preferences(notify=["high"])
    page = live(visit("ana", width=width))
    page.get_by_placeholder("Search").focus()
    web.ask("Which logo, some day?", options=["round", "square"])
    expect(page.get_by_role("button", name="1 new question")).to_be_visible()
    expect(page.locator("#live")).to_have_text("New choice from coder, API-4")
    expect(page.locator(".toast, dialog[open]")).to_have_count(0)
    web.ask("For ben alone?", response_type="boolean", reviewer="ben")
    expect(page.locator(".seg [data-all]")).to_have_text("14")
    count(page, 12)
    expect(page.get_by_role("button", name="1 new question")).to_be_visible()
    expect(page.locator(".toast, dialog[open]")).to_have_count(0)


@widths
def test_answered_row_shows_its_result(web, visit, width):
    page = live(visit("ana", width=width))
    q = web.q["approval"]
    order = page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)")
    web.as_("human:ben").approve(q)
    expect(page.locator(f".row[data-id={q}]")).to_contain_text("ben approved this.")
    assert page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)") == order
    count(page, 10)
    page.reload()
    expect(page.locator(f".row[data-id={q}]")).to_have_count(0)


@ways
def test_two_people_answer_at_once(web, visit, width, js):
    q = web.q["choice"]
    ana = visit("ana", f"/questions/{q}", width=width, js=js)
    ben = visit("ben", f"/questions/{q}", width=width, js=js)
    ana.get_by_text("Sessions", exact=True).click()
    ana.locator("textarea[name=text]").fill("Support has to lock an account at once.")
    ben.get_by_text("JWT", exact=True).click()
    say(ben, "Send")
    sent(ben)
    if js:  # the event arrives before she sends, and her draft is kept
        expect(ana.locator(".leftover")).to_contain_text("Support has to lock an account at once.")
        expect(ana.locator(".answer")).to_have_count(0)
        ana.get_by_role("button", name="What now?").click()
    else:
        say(ana, "Send")
    expect(ana.get_by_text("ben was faster:")).to_be_visible()
    expect(ana.locator(".alert")).to_contain_text("“JWT”")
    expect(ana.locator(".mine")).to_contain_text("Support has to lock an account at once.")
    assert web.desk.show(q)["response"]["value"] == "jwt"
    say(ana, "Keep it as a note")
    expect(ana.get_by_text("Kept as a note on API-5.")).to_be_visible()
    assert web.desk.show("API-5")["notes"][-1]["text"] == f"Late answer to {q}: Sessions\nSupport has to lock an account at once."


@ways
def test_late_answer_can_restart_an_ended_task(web, visit, width, js):
    q = web.q["choice"]
    page = visit("ana", f"/questions/{q}", width=width, js=js)
    if js:
        page.route("**/api/events*", lambda route: route.abort())  # the event does not arrive
        page.reload()
    page.get_by_text("JWT", exact=True).click()
    web.as_("human:ben").cancel("API-5", "not needed")
    say(page, "Send")
    if js:
        expect(page.locator(".unsent")).to_contain_text("Too late.")
        page.get_by_role("button", name="What now?").click()
    expect(page.get_by_text("is not asked any more")).to_be_visible()
    say(page, "Restart API-5 with it")
    expect(page.get_by_text("API-5 begins again, with your words.")).to_be_visible()
    assert web.desk.show("API-5")["state"] == "created"


@widths
def test_a_restart_with_a_page_open(web, visit, width):
    q = web.q["text"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.get_by_label("Your answer").fill("Team Plus, I th")
    web.stop()
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    expect(page.get_by_text("Not live, trying again" if width > 1000 else "Not live since")).to_be_visible()
    web.start()
    expect(page.get_by_text("This page is from before the restart.")).to_be_visible()
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_label("Your answer")).to_have_value("Team Plus, I th")
    live(page)
    expect(page.get_by_text("This page is from before the restart.")).to_have_count(0)
    page.get_by_label("Your answer").fill("Team Plus, I think")
    say(page, "Send answer")
    sent(page)
    assert web.desk.show(q)["response"]["value"] == "Team Plus, I think"


@widths
def test_offline_answers_wait_and_are_sent(web, visit, width):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.context.set_offline(True)
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    expect(page.locator(".answer .unsent")).to_contain_text("Saved on this device. Sent when you are back.")
    expect(page.locator(".answer .unsent .what")).to_have_text("“JWT”")
    expect(page.locator(".strip")).to_contain_text("1 answer waits on this device and is sent when you are back.")
    assert web.desk.show(q)["status"] == "pending"
    page.context.set_offline(False)
    sent(page, f"Sent {q}. architect goes on with API-5.")
    expect(page.locator(".strip")).to_have_count(0)
    assert web.desk.show(q)["response"]["value"] == "jwt"


@widths
def test_late_offline_answer_is_reported(web, visit, width):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.context.set_offline(True)
    page.get_by_text("Sessions", exact=True).click()
    say(page, "Send “Sessions”")
    expect(page.locator(".strip")).to_contain_text("1 answer waits")
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    web.as_("human:ben").answer(q, "jwt")
    page.context.set_offline(False)
    toast = page.locator(".toast")
    expect(toast).to_contain_text(re.compile(rf"{q} came too late. ben was faster: “JWT”, at \d\d:\d\d\."))
    toast.get_by_role("button", name="What now?").click()
    expect(page.get_by_role("button", name="Keep it as a note")).to_be_visible()
    expect(page.locator(".mine")).to_contain_text("Sessions")
    assert web.desk.show(q)["response"]["value"] == "jwt"


@widths
def test_visited_pages_are_available_offline(web, visit, width):
    page = visit("ana", worker=True, width=width)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    reasons = page.context.new_cdp_session(page).send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [reason["errorId"] for reason in reasons] in ([], ["in-incognito"]), "it can be installed"
    until(page, "navigator.serviceWorker.controller !== null")
    page.goto(f"{web.url}/questions/{web.q['permission']}")
    page.goto(f"{web.url}/inbox")
    page.context.set_offline(True)
    page.goto(f"{web.url}/questions/{web.q['permission']}")
    expect(page.get_by_text("This exact action, once")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    say(page, "Deny")
    expect(page.locator(".unsent .what")).to_have_text("Deny")
    page.context.set_offline(False)
    page.goto(f"{web.url}/inbox")
    sent(page, f"Sent {web.q['permission']}.")
    assert web.desk.show(web.q["permission"])["response"]["verdict"] == "rejected"


@widths
def test_draft_belongs_to_its_user(web, visit, width):
    """On a shared device a queued answer belongs to its user."""
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.context.set_offline(True)
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    expect(page.locator(".strip")).to_contain_text("1 answer waits")
    page.goto("about:blank")
    page.context.set_offline(False)
    page.context.clear_cookies()
    page.goto(web.link("ben"))
    page.wait_for_url("**/inbox")
    page.goto(f"{web.url}/questions/{q}")
    live(page)
    expect(page.get_by_role("radio", name="JWT")).not_to_be_checked()
    assert page.locator(".strip").count() == 0 and web.desk.show(q)["status"] == "pending"
    page.context.clear_cookies()
    page.goto(web.link("ana"))
    sent(page, f"Sent {q}.")
    assert web.desk.show(q)["responded_by"] == "human:ana"


@widths
def test_a_draft_survives_a_reload(web, visit, width):
    page = visit("ana", f"/questions/{web.q['choice']}", width=width)
    page.get_by_text("JWT", exact=True).click()
    page.locator("textarea[name=text]").fill("half a thou")
    page.reload()
    expect(page.locator("textarea[name=text]")).to_have_value("half a thou")
    expect(page.get_by_role("radio", name="JWT")).to_be_checked()
    expect(page.get_by_role("button", name="Send “JWT”")).to_be_visible()


@widths
def test_a_hidden_page_notifies_without_the_command(web, visit, width):
    page = visit("ana", permissions=["notifications"], worker=True, width=width)
    live(page)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.evaluate("""() => {
        Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
        const kind = ServiceWorkerRegistration.prototype, show = kind.showNotification;
        kind.showNotification = function (...about) { return show.apply(this, about).then(() => { window.shown = true; }); };
    }""")
    q = web.ask(
        "Run this in .?\nrm -rf secret",
        "permission",
        action={"tool": "Bash", "input": {"command": "rm -rf secret"}, "folder": "."},
    )
    notes = (
        "navigator.serviceWorker.ready.then(w => w.getNotifications()).then(all => all.map(n => [n.title, n.body, n.data.url]))"
    )
    until(page, "window.shown === true")  # getNotifications() before that makes Chromium drop the pending one
    assert page.evaluate(notes) == [["Permission from coder, API-4", "Asks before it acts.", f"/questions/{q}"]]
    web.as_("human:ben").reject(q)
    until(page, f"{notes}.then(all => all.length === 0)")  # an answer clears it on all pages


@widths
def test_one_connection_for_all_tabs(web, visit, width):
    first = live(visit("ana", width=width))
    second = first.context.new_page()
    second.goto(f"{web.url}/inbox")
    live(second)
    assert web.site.app.state.shared.watchers == 1
    q = web.ask("Both hear of it?", response_type="boolean")
    for page in (first, second):
        expect(page.locator(".nav [data-waiting]")).to_have_text("12")
    first.close()
    web.as_("human:ben").answer(q, True)
    expect(second.locator(".nav [data-waiting]")).to_have_text("11")


# --- without JavaScript: no updates, but each load is current ---------------------------------------------------------


@widths
def test_reload_shows_changes_without_javascript(web, visit, width):
    page = visit("ana", width=width, js=False)
    expect(page.locator(".asleep")).to_contain_text("Not live: that needs JavaScript.")
    expect(page.locator("#pulse, [data-newer], [data-select]").filter(visible=True)).to_have_count(0)
    count(page, 11)
    q = web.ask("Which logo?", options=["round", "square"])
    web.as_("human:ben").approve(web.q["approval"])
    web.as_("human:ben").answer(web.q["boolean"], True)
    page.get_by_role("link", name="Reload").click()
    count(page, 10)
    expect(page.locator(f".row[data-id={q}]")).to_have_count(1)
    expect(page.locator(f".row[data-id={web.q['approval']}]")).to_have_count(0)


@widths
def test_restart_goes_unnoticed_without_javascript(web, visit, width):
    q = web.q["text"]
    page = visit("ana", f"/questions/{q}", width=width, js=False)
    page.get_by_label("Your answer").fill("Team Plus")
    web.stop()
    web.start()
    say(page, "Send answer")
    sent(page)
    assert web.desk.show(q)["response"]["value"] == "Team Plus"
