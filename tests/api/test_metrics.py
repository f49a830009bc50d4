"""Metrics and statistics: the peak, blocking questions, counters, refused questions."""

from __future__ import annotations

import re

import pytest

from tests.fixtures.server import Site
from yourturn.testing import FakeClock


@pytest.fixture(params=["sqlite", "postgres"])
def wound(request, new_address):
    clock = FakeClock()
    site = Site(new_address(request.param), clock=clock)
    yield site, clock
    site.close()


def metrics(site):
    text = site.get("/metrics", role="viewer").raw.decode()
    values = dict(re.findall(r"^(yourturn_\S+) (\S+)$", text, re.MULTILINE))
    families = {re.sub(r"_(sum|count)$", "", name.partition("{")[0]) for name in values}
    for family in families:
        assert len(re.findall(rf"^# HELP {family} \S.*$", text, re.MULTILINE)) == 1, family
        assert len(re.findall(rf"^# TYPE {family} (gauge|counter|summary)$", text, re.MULTILINE)) == 1, family
    return {name.removeprefix("yourturn_"): float(value) for name, value in values.items()}


def test_peak_of_waiting_questions(wound):
    site, clock = wound
    key = site.desk.create("A")["key"]
    clock.advance(hours=2)
    asked = [site.desk.ask(key, "Which?", blocking=False, default="x")["id"] for _ in range(69)]
    clock.advance(seconds=1)
    for q in asked[:60]:
        site.desk.answer(q, "y")
    clock.advance(hours=3)
    for days in (1, 7, 30):
        stats = site.get(f"/api/stats?days={days}").json
        assert stats["peak"] == 69 and max(point["waiting"] for point in stats["queue"]) == 9
    clock.advance(hours=48)
    assert site.get("/api/stats?days=1").json["peak"] == 9
    cookie = {"Cookie": f"yourturn={site.desk.use_link(site.desk.create_link('ana')['link'])['session']}", "Accept": "text/html"}
    assert "9 now, at most 69" in site.get("/stats?range=week", role=None, headers=cookie).raw.decode()


def test_age_counts_only_blocking_questions(wound):
    site, clock = wound
    site.desk.ask(site.desk.create("A")["key"], "Which?", blocking=False, default="x")
    clock.advance(hours=2)
    values = metrics(site)
    assert values['oldest_question_seconds{blocking="true"}'] == 0
    assert values['questions_pending{kind="input",blocking="false"}'] == 1
    assert values['questions_pending{kind="input",blocking="true"}'] == 0
    site.desk.ask(site.desk.create("B")["key"], "Which?", timeout="24h")
    clock.advance(hours=1)
    values = metrics(site)
    assert values['oldest_question_seconds{blocking="true"}'] == 3600
    assert values['questions_pending{kind="input",blocking="true"}'] == 1


def test_counters_only_grow(wound):
    site, clock = wound
    key, before = site.desk.create("A")["key"], {}
    for at in range(1, 5):
        q = site.desk.ask(key, "Which?", timeout="1h")
        clock.advance(seconds=30)
        if at % 2:
            site.desk.answer(q, "x")
        else:
            clock.advance(hours=2)
            site.desk.reconcile()
            site.desk.reopen(key)
        values = metrics(site)
        assert values['questions_asked_total{kind="input"}'] == at
        assert values['questions_closed_total{kind="input",status="answered"}'] == values["answer_seconds_count"] == (at + 1) // 2
        assert values.get('questions_closed_total{kind="input",status="timeout"}', 0) == at // 2
        assert values["answer_seconds_sum"] == 30 * ((at + 1) // 2)
        assert all(values[name] >= value for name, value in before.items() if "_total" in name)
        before = values


def test_refused_questions_are_counted(site, job):
    def counted():
        return sum(value for name, value in metrics(site).items() if name.startswith('question_errors_total{code="invalid"'))

    before = counted()
    bad = {"question": "x", "type": "nonsense", "responseType": "text"}
    assert site.post(f"/api/jobs/{job}/questions", bad, role="agent").status == 422
    assert site.post(f"/api/tasks/{job}/questions", {"text": ""}, role="agent").status == 422
    assert site.post("/api/desk/flag", {"args": [job, ""]}, role="agent").status == 422
    assert site.post(f"/api/tasks/{job}/note", {"text": ""}, role="agent").status == 422, "not a question"
    assert counted() == before + 3
