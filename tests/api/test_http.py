"""The HTTP API: idempotency, preconditions, paging, limits, errors."""

from __future__ import annotations

import json
import threading
import time

import pytest

from tests.fixtures.server import other_workspace
from yourturn.api import examples
from yourturn.api.handlers import VERB_ROUTES
from yourturn.api.openapi import document


def test_a_task_over_http(site):
    created = site.post("/api/tasks", {"title": "Add login", "dependsOn": [], "maxRetries": 5, "labels": ["web"]}, role="member")
    assert created.status == 201 and created.json["max_retries"] == 5 and created.headers["location"] == f"/api/tasks/{created.json['key']}"
    key = created.json["key"]
    assert site.get(f"/api/tasks/{key}").json == created.json
    claimed = site.post(f"/api/tasks/{key}/claim", {"worker": "w1"}, role="agent").json
    assert claimed["task"]["state"] == "working"
    token = claimed["claim"]["token"]
    asked = site.post(f"/api/tasks/{key}/questions", {"text": "Which?", "responseType": "text", "claim": token}, role="agent")
    assert asked.status == 201 and asked.json["status"] == "pending"
    assert site.get(f"/api/tasks/{key}/questions").json["questions"][0]["id"] == asked.json["id"]
    answered = site.post(f"/api/questions/{asked.json['id']}/answer", {"value": "that"})
    assert answered.json["response"]["value"] == "that"
    done = site.post(f"/api/tasks/{key}/complete", {"summary": "Done.", "claim": token}, role="agent")
    assert done.status == 200 and done.json["state"] == "done"
    assert [e["action"] for e in site.get(f"/api/tasks/{key}/events").json["events"]][:3] == ["create", "claim", "ask"]


def test_the_next_task(site):
    if "NX" not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project("NX")
    assert site.post("/api/claims", {"worker": "w1", "project": "NX"}, role="agent").json is None
    key = site.desk.create("A", project="NX")["key"]
    first = site.post("/api/claims", {"worker": "w1", "project": "NX"}, role="agent", headers={"Idempotency-Key": f"take {key}"})
    again = site.post("/api/claims", {"worker": "w1", "project": "NX"}, role="agent", headers={"Idempotency-Key": f"take {key}"})
    assert first.json["task"]["key"] == again.json["task"]["key"] == key
    assert first.json["claim"]["epoch"] == again.json["claim"]["epoch"] == 1
    assert site.post(f"/api/tasks/{key}/heartbeat", {"claim": first.json["claim"]["token"]}, role="agent").status == 409
    assert site.post(f"/api/tasks/{key}/park", {"claim": again.json["claim"]["token"]}, role="agent").json["state"] == "ready"


def test_finished_work_is_accepted_like_a_question(site):
    if "RV" not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project("RV")
        site.desk.set("review", "ask", "RV")
    key = site.desk.create("A", project="RV")["key"]
    got = site.desk.claim(key, "w1")
    site.desk.complete(got["claim"], "Ready")
    asked = site.get(f"/api/questions/{key}").json
    assert (asked["kind"], asked["reason"], asked["id"][0]) == ("approval", "finished", "Q")
    for wrong in ({"text": "hm"}, {"value": "banana"}, {"value": ""}, {"response": {"type": "approval", "value": "cancel"}}):
        assert site.post(f"/api/questions/{key}/answer", wrong).status == 422, wrong
    answered = site.post(f"/api/questions/{asked['id']}/answer", {"verdict": "approved"}).json
    assert (answered["status"], answered["task_state"]) == ("answered", "done")


@pytest.mark.parametrize("word", ["no", "n", "deny", "denied", "false", False, 0, "0", "Reject.", "decline"])
def test_no_to_finished_work_is_a_rejection_in_both_formats(site, word):
    if "RV" not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project("RV")
        site.desk.set("review", "ask", "RV")
    for body in ({"value": word}, {"response": {"type": "approval", "value": word}}):
        key = site.desk.create("A", project="RV")["key"]
        site.desk.complete(site.desk.claim(key, "w1")["claim"], "Ready")
        asked = site.desk.inbox(task=key)[0]["id"]
        assert site.post(f"/api/questions/{asked}/answer", body).status == 200
        assert site.desk.show(key)["state"] == "ready"


# --- idempotency----------------------------------------------------------------------------------------------------------


def test_idempotency_key(site, job):
    key = {"Idempotency-Key": f"note {job}"}
    first, second = (site.post(f"/api/tasks/{job}/note", {"text": "once"}, headers=key) for _ in range(2))
    assert first.status == second.status == 200
    assert [n["text"] for n in site.get(f"/api/tasks/{job}").json["notes"]] == ["once"]
    other = site.post(f"/api/tasks/{job}/note", {"text": "twice"}, headers=key)
    assert other.status == 409 and other.code == "idempotency_conflict"
    assert site.post(f"/api/tasks/{job}/note", {"text": "twice"}, headers=key, role="member").status == 200, (
        "keys are per actor"
    )
    for wrong in ("x" * 201, " ", "a\x01b"):
        assert site.post(f"/api/tasks/{job}/note", {"text": "x"}, headers={"Idempotency-Key": wrong}).status in (400, 422)


def test_concurrent_requests_with_one_idempotency_key(site):
    replies = []

    def create() -> None:
        replies.append(site.post("/api/tasks", {"title": "Only one"}, headers={"Idempotency-Key": f"crowd {id(replies)}"}))

    crowd = [threading.Thread(target=create) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert {r.status for r in replies} == {201} and len({r.json["key"] for r in replies}) == 1


# --- preconditions ----------------------------------------------------------------------------------------------------


def test_if_match_of_a_task(site, job):
    seen = site.get(f"/api/tasks/{job}")
    tag = seen.headers["etag"]
    same = site.get(f"/api/tasks/{job}", headers={"If-None-Match": f'"other", {tag}'})
    assert same.status == 304 and same.raw == b"" and same.headers["etag"] == tag
    site.post(f"/api/tasks/{job}/note", {"text": "x"})
    assert site.get(f"/api/tasks/{job}", headers={"If-None-Match": tag}).status == 200
    late = site.post(f"/api/tasks/{job}/cancel", headers={"If-Match": tag})
    assert late.status == 412 and late.code == "changed"
    assert site.get(f"/api/tasks/{job}").json["state"] == "ready"
    now = site.get(f"/api/tasks/{job}").headers["etag"]
    assert site.post(f"/api/tasks/{job}/cancel", headers={"If-Match": now}).status == 200
    version = site.get(f"/api/tasks/{job}").json["version"]
    assert site.post(f"/api/tasks/{job}/note", {"text": "y"}, headers={"If-Match": f'"{version}"'}).status == 200
    assert site.post(f"/api/tasks/{job}/note", {"text": "z"}, headers={"If-Match": "*"}).status == 200
    assert site.post(f"/api/tasks/{job}/note", {"text": "z"}, headers={"If-Match": "nonsense"}).status == 422


def test_if_match_of_a_question(site, job):
    question = site.desk.ask(job, "Which?")["id"]
    tag = site.get(f"/api/questions/{question}").headers["etag"]
    site.desk.assign(question, "ben")
    assert site.post(f"/api/questions/{question}/answer", {"value": "x"}, headers={"If-Match": tag}).status == 412
    tag = site.get(f"/api/questions/{question}").headers["etag"]
    assert site.post(f"/api/questions/{question}/answer", {"value": "x"}, headers={"If-Match": tag}).status == 200


# --- paging -----------------------------------------------------------------------------------------------------------


def test_lists_are_paged(site):
    if "PG" not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project("PG")
        for at in range(7):
            task = site.desk.create(f"T{at}", project="PG", priority=at % 3)
            site.desk.ask(task, f"Q{at}?", urgency=("low", "normal", "high")[at % 3])
    for path, name in (
        ("/api/tasks?project=PG", "key"),
        ("/api/tasks?project=PG&state=open", "key"),
        ("/api/questions?project=PG", "id"),
    ):
        seen, cursor = [], ""
        while cursor is not None:
            page = site.get(f"{path}&limit=3{cursor and '&cursor=' + cursor}").json
            items = page["tasks" if name == "key" else "questions"]
            assert len(items) <= 3
            seen += [one[name] for one in items]
            cursor = page["next_cursor"]
        assert len(seen) == len(set(seen)) == 7, path
    assert len(site.get("/api/questions?project=PG&urgency=high").json["questions"]) == 2
    assert len(site.get("/api/tasks?project=PG&awaiting=input").json["tasks"]) == 7
    assert len(site.get("/api/tasks?project=PG&priority=0&awaiting=").json["tasks"]) == 3
    assert site.get("/api/tasks?project=PG&search=t3").json["tasks"][0]["title"] == "T3"


@pytest.mark.parametrize(
    "path",
    [
        "/api/tasks?limit=0", "/api/tasks?limit=501", "/api/tasks?limit=x", "/api/tasks?state=nonsense", "/api/tasks?stat=open",
        "/api/tasks?priority=9", "/api/tasks?awaiting=nonsense", "/api/questions?status=nonsense", "/api/questions?kind=nonsense",
        "/api/tasks?search=a%00b", "/api/tasks?search=%ff", "/api/tasks?limit=1&limit=2", "/api/stats?days=0", "/api/questions?x=1",
    ],
)  # fmt: skip
def test_invalid_filters_are_refused(site, path):
    reply = site.get(path)
    assert reply.status == 422 and reply.code == "invalid", reply.raw


# --- limits -----------------------------------------------------------------------------------------------------------


def test_size_limit_of_bodies(site, job):
    reply = site.post(f"/api/tasks/{job}/note", {"text": "x" * 1_000_001})
    assert reply.status == 413 and reply.code == "too_large"
    assert site.post(f"/api/tasks/{job}/note", {"text": "x" * 900_000}).status == 200
    lie = site.call("POST", f"/api/tasks/{job}/note", raw=b"{}", headers={"Content-Length": "99999999999"})
    assert lie.status == 413


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"{", 422), (b"[]", 422), (b'{"text": NaN}', 422), (b'{"text": "a", "text": "b"}', 422), (b"\xff\xfe", 422), (b'"x"', 422),
        (b'{"text": "\\ud800"}', 422), (b'{"text": "\\u0000"}', 422), (b"[" * 100_000, 422), (b'{"text": 7}', 422), (b"", 422),
        (b'{"text": "x", "surprise": 1}', 422), (b'{"text": null}', 422),
    ],
)  # fmt: skip
def test_invalid_bodies_are_refused(site, job, raw, status):
    reply = site.call("POST", f"/api/tasks/{job}/note", raw=raw)
    assert reply.status == status, reply.raw
    assert site.get(f"/api/tasks/{job}").json["notes"] == []


def test_other_media_types_are_refused(site, job):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        reply = site.call("POST", f"/api/tasks/{job}/note", raw=b'{"text": "x"}', headers={"Content-Type": kind})
        assert reply.status == 400 and reply.code == "usage"


def test_question_rate_limit(site):
    name = "SLOW"
    if name not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project(name)
        site.desk.set("question_rate", 3, name)
    key = site.desk.create("A", project=name)["key"]
    body = {"text": "Which?", "blocking": False, "default": "x"}
    assert [site.post(f"/api/tasks/{key}/questions", body, role="agent").status for _ in range(3)] == [201] * 3
    late = site.post(f"/api/tasks/{key}/ask", body, role="agent")
    assert late.status == 429 and late.code == "too_many" and 1 <= int(late.headers["retry-after"]) <= 3600
    assert site.post("/api/desk/ask", {"args": [key, "Which?"]}, role="agent").status == 429
    assert (
        site.post(
            f"/api/jobs/{key}/questions", {"question": "x", "type": "blocking", "responseType": "text"}, role="agent"
        ).status
        == 429
    )
    other = site.desk.create("B", project=name)["key"]
    assert site.post(f"/api/tasks/{other}/questions", body, role="agent").status == 201


def test_timeouts_have_limits(site, job):
    for timeout, status in (("4m", 422), ("25h", 422), ("5m", 201), ("24h", 201)):
        assert site.post(f"/api/tasks/{job}/questions", {"text": "x", "timeout": timeout}, role="agent").status == status


# --- errors -----------------------------------------------------------------------------------------------------------


def test_errors_have_one_format(site, job):
    site.desk.cancel(job)
    for method, path, status, code in (
        ("GET", "/api/nothing", 404, "not_found"), ("GET", "/nothing", 404, "not_found"), ("PUT", "/api/tasks", 405, "usage"),
        ("DELETE", f"/api/tasks/{job}", 405, "usage"), ("POST", f"/api/tasks/{job}/claim", 422, "invalid"),
        ("POST", f"/api/tasks/{job}/dance", 404, "not_found"), ("POST", f"/api/tasks/{job}/vet", 409, "illegal_move"),
        ("POST", "/api/desk/nonsense", 404, "not_found"), ("POST", "/api/desk/backup", 404, "not_found"),
        ("POST", "/healthz", 405, "usage"), ("GET", "/api/questions/PROJ-1x", 404, "not_found"), ("GET", "/api/tasks/Q1", 404, "not_found"),
    ):  # fmt: skip
        reply = site.call(method, path, {} if method == "POST" else None)
        assert (reply.status, reply.code) == (status, code), (path, reply.raw)
        assert set(reply.json["error"]) == {"code", "message", "hint"} and reply.headers["content-type"] == "application/json"
    assert "reopen (admin)" in site.post(f"/api/tasks/{job}/vet").json["error"]["hint"]
    assert site.call("PUT", "/api/tasks").headers["allow"] == "GET, HEAD, POST"


def test_health(site):
    for path in ("/healthz", "/readyz"):
        assert site.get(path, role=None).json == {"status": "ok"}
        assert site.call("HEAD", path, role=None).status == 200


def test_head_is_get_without_a_body(site, job):
    whole, head = site.get(f"/api/tasks/{job}"), site.call("HEAD", f"/api/tasks/{job}")
    assert head.status == 200 and head.raw == b"" and head.headers["etag"] == whole.headers["etag"]


# --- stats, document --------------------------------------------------------------------------------------------------


def test_stats_and_metrics(site):
    name = "NUM"
    if name not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project(name)
        key = site.desk.create("A", project=name)["key"]
        site.desk.answer(site.desk.ask(key, "One?"), "x")
        site.desk.ask(key, "Two?", kind="permission")
    stats = site.get(f"/api/stats?project={name}", role="viewer").json
    assert stats["tasks"] == {"human": 1} and stats["questions"] == {"pending": 1, "answered": 1, "timeout": 0, "cancelled": 0}
    assert stats["questions_per_task"] == {"mean": 2.0, "most": 2, "tasks": 1, "spread": [0, 1, 0, 0, 0]}
    assert stats["kinds"]["input"]["answer_seconds"]["count"] == 1 and stats["kinds"]["input"]["timeout_rate"] == 0
    text = site.get("/metrics", role="viewer").raw.decode()
    assert 'yourturn_questions_pending{kind="permission",blocking="true"}' in text and site.get("/metrics").headers["content-type"].startswith(
        "text/plain"
    )


def test_openapi_document_is_complete(site):
    served = site.get("/openapi.json", role=None).json
    assert served == json.loads(json.dumps(document()))
    paths = served["paths"]
    for route in (
        "/api/tasks", "/api/tasks/{key}", "/api/tasks/{key}/questions", "/api/questions", "/api/questions/pending", "/api/questions/{id}",
        "/api/questions/{id}/answer", "/api/questions/{id}/cancel", "/api/events", "/api/stats", "/metrics", "/api/jobs/{id}/questions",
        *(f"/api/tasks/{{key}}/{verb}" for verb in VERB_ROUTES),
    ):  # fmt: skip
        assert route in paths, route
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert operation["responses"] and operation["summary"], path
            if method == "post":
                assert "example" in next(iter(operation["requestBody"]["content"].values())), path


def test_openapi_examples_work(site):
    key = site.post("/api/tasks", examples.REQUESTS["POST /api/tasks"]).json["key"]
    asked = site.post(f"/api/jobs/{key}/questions", examples.REQUESTS["POST /api/jobs/{id}/questions"])
    assert set(asked.json) == set(examples.RESPONSES["POST /api/jobs/{id}/questions"])
    site.post(f"/api/questions/{asked.json['questionId']}/cancel", examples.REQUESTS["POST /api/questions/{id}/cancel"])
    asked = site.post(f"/api/tasks/{key}/questions", examples.REQUESTS["POST /api/tasks/{key}/questions"])
    assert asked.status == 201
    done = site.post(f"/api/questions/{asked.json['id']}/answer", examples.REQUESTS["POST /api/questions/{id}/answer"])
    assert done.json == examples.RESPONSES["POST /api/questions/{id}/answer"]
    for verb in ("note", "update", "defer", "flag"):
        if verb == "flag":
            site.post(f"/api/tasks/{key}/wake")
        assert site.post(f"/api/tasks/{key}/{verb}", examples.REQUESTS[verb]).status == 200, verb


def test_due_moves_are_made_without_requests(new_address):
    """The server makes due moves by itself."""
    from tests.fixtures.server import Site

    site = Site(new_address("sqlite"))
    try:
        site.desk.set("min_timeout", "1s")
        key = site.desk.create("A")["key"]
        stream = site.stream(f"?task={key}&only=question_timeout")
        site.desk.ask(key, "Which?", timeout="1s", default="so")
        began = time.monotonic()
        assert stream.take(1)[0][2]["response"] == {"type": "text", "value": "so", "text": "so"}
        assert time.monotonic() - began < 60
        stream.close()
    finally:
        site.close()
    assert other_workspace


def test_unknown_fields_are_refused_by_verbs_without_fields(site, job):
    for verb in ("vet", "wake", "hand_back", "cancel"):
        refused = site.post(f"/api/tasks/{job}/{verb}", {"surprise": 1})
        assert refused.status == 422 and "surprise" in refused.json["error"]["message"], verb


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_empty_answer_is_refused(site, job, text):
    asked = site.desk.ask(job, "May I?", "permission")["id"]
    for path in (f"/api/questions/{asked}/answer", f"/api/tasks/{asked}/answer"):
        assert site.post(path, {"text": text}).status == 422, path
    assert site.desk.show(asked)["status"] == "pending"


def test_malformed_claims_and_late_previews_are_refused(site, job):
    for method in ("complete", "heartbeat", "release"):
        assert site.post(f"/api/desk/{method}", {"args": [{"token": 5}]}).status in (404, 409, 422), method
    asked = site.desk.ask(job, "Which?")["id"]
    site.desk.answer(asked, "this")
    assert site.post("/api/desk/lands", {"args": [asked, "that"]}).status == 409
