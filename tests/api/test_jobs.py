"""The jobs API: requests, answers and events."""

from __future__ import annotations

import pytest

QUESTION = {
    "question": "Which persona should I target for this PRD?",
    "type": "blocking",
    "responseType": "choice",
    "options": [
        {"id": "dev", "label": "Developers", "value": "dev", "description": "They build it"},
        {"label": "Designers", "value": "design"},
    ],
    "context": {"jobType": "prd", "projectName": "Apollo", "currentStep": "research", "suggestedOptions": ["dev"]},
    "timeoutMinutes": 30,
}


def asked(site, job, **more):
    reply = site.post(f"/api/jobs/{job}/questions", {**QUESTION, **more}, role="agent")
    assert reply.status == 201, reply.raw
    return reply.json["questionId"]


def test_a_job_asks(site, job):
    reply = site.post(f"/api/jobs/{job}/questions", QUESTION, role="agent")
    assert reply.status == 201
    assert set(reply.json) == {"questionId", "timeoutAt"}
    assert reply.headers["location"] == f"/api/questions/{reply.json['questionId']}"
    (question,) = site.get(f"/api/jobs/{job}/questions").json["questions"]
    assert question == {
        "id": reply.json["questionId"], "jobId": job, "workspaceId": "default", "projectId": "PROJ", "type": "blocking",
        "question": QUESTION["question"], "context": QUESTION["context"], "status": "pending", "responseType": "choice",
        "options": [
            {"id": "dev", "label": "Developers", "value": "dev", "description": "They build it"},
            {"id": "design", "label": "Designers", "value": "design", "description": ""},
        ],
        "response": None, "respondedBy": None, "respondedAt": None, "timeoutAt": reply.json["timeoutAt"], "defaultResponse": None,
        "metadata": None, "createdAt": question["createdAt"],
    }  # fmt: skip
    assert site.get(f"/api/jobs/{job}").json == {"id": job, "status": "waiting_for_input", "projectId": "PROJ"}


def test_answer_resumes_the_job(site, job):
    question = asked(site, job)
    reply = site.post(f"/api/questions/{question}/answer", {"response": {"type": "choice", "value": "dev", "text": "For now"}})
    assert reply.status == 200 and reply.json == {"success": True, "jobResumed": True}
    (closed,) = site.get(f"/api/jobs/{job}/questions").json["questions"]
    assert closed["status"] == "answered" and closed["respondedBy"].startswith("human:admin")
    assert closed["response"] == {"type": "choice", "value": "dev", "text": "For now"}
    assert site.get(f"/api/jobs/{job}").json["status"] == "pending"


def test_last_answer_resumes_the_job(site, job):
    first, second = asked(site, job), asked(site, job)
    answer = {"response": {"type": "choice", "value": "dev"}}
    assert site.post(f"/api/questions/{first}/answer", answer).json == {"success": True, "jobResumed": False}
    assert site.post(f"/api/questions/{second}/answer", answer).json == {"success": True, "jobResumed": True}


@pytest.mark.parametrize(
    ("type_", "response_type", "kind", "status", "more"),
    [
        ("blocking", "text", "input", "waiting_for_input", {}),
        ("non_blocking", "text", "input", "pending", {"defaultResponse": {"type": "text", "value": "TypeScript"}}),
        ("approval", "approval", "permission", "waiting_for_approval", {}),
        ("approval", "boolean", "permission", "waiting_for_approval", {}),
        ("error_recovery", "text", "recovery", "waiting_for_input", {"context": {"errorDetails": "HTTP 503"}}),
    ],
)
def test_question_types_map_to_kinds(site, job, type_, response_type, kind, status, more):
    question = asked(site, job, type=type_, responseType=response_type, options=[], timeoutMinutes=None, **more)
    q = site.get(f"/api/questions/{question}").json
    assert (q["kind"], q["blocking"]) == (kind, type_ != "non_blocking")
    assert site.get(f"/api/jobs/{job}").json["status"] == status
    shown = site.get(f"/api/jobs/{job}/questions").json["questions"][0]
    assert (shown["type"], shown["responseType"]) == (type_, response_type)
    minutes = {"blocking": 30, "approval": 15, "error_recovery": 10}.get(type_)
    assert (shown["timeoutAt"] is None) == (minutes is None)


def test_an_approval_is_yes_or_no(site, job):
    question = asked(site, job, type="approval", responseType="approval", options=[])
    for wrong in ({}, {"type": "approval"}, {"value": "perhaps"}, {"type": "text", "value": "yes"}, {"value": None}, "yes", 7):
        assert site.post(f"/api/questions/{question}/answer", {"response": wrong}).status == 422, wrong
    assert site.get(f"/api/questions/{question}").json["status"] == "pending"
    reply = site.post(
        f"/api/questions/{question}/answer", {"response": {"type": "approval", "value": False, "text": "Not on a Friday"}}
    )
    assert reply.json == {"success": True, "jobResumed": True}
    shown = site.get(f"/api/jobs/{job}/questions").json["questions"][0]
    assert shown["response"] == {"type": "approval", "value": False, "text": "Not on a Friday"}


def test_pending_questions_of_a_workspace(site, job):
    question = asked(site, job, type="error_recovery")
    for query in (
        "?workspaceId=default&type=error_recovery&limit=500",
        "?workspaceId=default&projectId=PROJ&limit=500",
        "?limit=500",
    ):
        reply = site.get(f"/api/questions/pending{query}")
        assert reply.status == 200 and question in [q["id"] for q in reply.json["questions"]], query
    assert question not in [q["id"] for q in site.get("/api/questions/pending?type=approval&limit=500").json["questions"]]
    assert site.get("/api/questions/pending?type=nonsense").status == 422
    assert site.get("/api/questions/pending?projectId=NONE").status == 404
    assert site.get("/api/questions/pending?workspaceId=elsewhere").status == 404


def test_a_question_is_cancelled(site, job):
    question = asked(site, job)
    reply = site.post(f"/api/questions/{question}/cancel", {"reason": "The job is gone"})
    assert reply.status == 200 and reply.json["success"] is True and reply.json["status"] == "cancelled"
    late = site.post(f"/api/questions/{question}/answer", {"response": {"type": "choice", "value": "dev"}})
    assert late.status == 409 and late.code == "already_answered"


def test_first_answer_wins(site, job):
    question = asked(site, job)
    answer = {"response": {"type": "choice", "value": "dev"}}
    assert site.post(f"/api/questions/{question}/answer", answer, role="member").status == 200
    late = site.post(f"/api/questions/{question}/answer", answer)
    assert late.status == 409 and "human:member" in late.json["error"]["message"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"question": ""}, {"question": None}, {"question": 7}, {"type": "rhetorical"}, {"responseType": "song"}, {"options": "dev"},
        {"options": [{"description": "no value"}]}, {"timeoutMinutes": 4}, {"timeoutMinutes": 24 * 60 + 1}, {"timeoutMinutes": "5"},
        {"context": 7}, {"defaultResponse": "dev"}, {"defaultResponse": {"value": "other"}}, {"surprise": 1},
        {"type": "non_blocking"}, {"type": "approval", "responseType": "approval", "options": [], "defaultResponse": {"value": True}},
        {"question": "a\x00b"}, {"responseType": "choice", "options": []},
    ],
    ids=str,
)  # fmt: skip
def test_bad_questions_are_refused(site, job, wrong):
    reply = site.post(f"/api/jobs/{job}/questions", {**QUESTION, **wrong}, role="agent")
    assert reply.status == 422 and reply.code == "invalid", reply.raw
    assert site.get(f"/api/jobs/{job}/questions").json == {"questions": []}


def test_the_events_of_a_job(site, job):
    stream = site.stream(f"?task={job}&only=question_asked,question_answered,status&after={site.desk.desk_cursor()}")
    assert stream.status == 200
    question = asked(site, job)
    site.post(f"/api/questions/{question}/answer", {"response": {"type": "choice", "value": "dev"}})
    events = stream.take(4)
    stream.close()
    assert [name for _, name, _ in events] == ["question_asked", "status", "question_answered", "status"]
    first = events[0][2]
    assert first == {
        "type": "question_asked", "questionId": question, "jobId": job,
        "question": {
            "question": QUESTION["question"], "type": "blocking", "responseType": "choice", "context": QUESTION["context"],
            "options": first["question"]["options"], "timeoutAt": first["question"]["timeoutAt"],
        },
    }  # fmt: skip
    assert [o["value"] for o in first["question"]["options"]] == ["dev", "design"]
    assert events[1][2] == {"type": "status", "jobId": job, "status": "waiting_for_input", "state": "human"}
    answered = events[2][2]
    assert (answered["type"], answered["questionId"], answered["jobId"]) == ("question_answered", question, job)
    assert answered["response"] == {"type": "choice", "value": "dev"}
    assert events[3][2]["status"] == "pending"


# --- typical questions of agents --------------------------------------------------------------------------------------

_TICKETS = {
    "question": "Create 5 Linear tickets? (Y/N)", "type": "approval", "responseType": "boolean",
    "options": [
        {"id": "yes", "label": "Yes", "value": True, "description": "All five"}, {"id": "no", "label": "No", "value": False},
    ],
    "context": {"jobType": "tickets", "currentStep": "publish"},
}  # fmt: skip
_FAILED = {
    "question": "API failed, retry or skip?", "type": "error_recovery", "responseType": "choice",
    "options": [{"label": "Retry", "value": "retry"}, {"label": "Skip", "value": "skip"}],
    "context": {"errorDetails": "HTTP 503 from linear.example", "suggestedOptions": ["retry"]},
    "defaultResponse": {"type": "choice", "value": "skip"},
}  # fmt: skip
_VERBOSE = {
    "question": "Do you want verbose output in the logs?", "type": "non_blocking", "responseType": "boolean",
    "defaultResponse": {"type": "boolean", "value": False, "text": "Quiet is usual"},
}  # fmt: skip
#: The fields of a question, of an answer and of an event, and nothing in snake_case.
_FIELDS = {
    "id", "jobId", "workspaceId", "projectId", "type", "question", "context", "status", "responseType", "options", "response",
    "respondedBy", "respondedAt", "timeoutAt", "defaultResponse", "metadata", "createdAt",
}  # fmt: skip


@pytest.fixture(scope="module")
def wound(new_address):
    """A server whose clock the test advances."""
    from tests.fixtures.server import Site
    from yourturn.testing import FakeClock

    clock = FakeClock()
    site = Site(new_address("sqlite"), clock=clock)
    yield site, clock
    site.close()


def seen(site, job, question):
    (shown,) = [q for q in site.get(f"/api/jobs/{job}/questions").json["questions"] if q["id"] == question]
    assert set(shown) == _FIELDS
    return shown


def put(site, body):
    job = site.desk.create("A job")["key"]
    assert site.call("GET", f"/api/jobs/{job}").json["status"] == "pending"
    claim = site.desk.claim(job, "w1")["claim"]
    assert site.get(f"/api/jobs/{job}").json["status"] == "running"
    stream = site.stream(
        f"?task={job}&after={site.desk.desk_cursor()}&only=question_asked,question_answered,question_timeout,status"
    )
    reply = site.post(f"/api/jobs/{job}/questions", body, role="agent")
    assert reply.status == 201 and set(reply.json) == {"questionId", "timeoutAt"}, reply.raw
    return job, reply.json["questionId"], reply.json["timeoutAt"], stream, claim


def minutes(site, at):
    from datetime import datetime

    return (
        None if at is None else round((datetime.fromisoformat(at) - datetime.fromisoformat(site.desk.now())).total_seconds() / 60)
    )


def test_permission_with_described_options(wound):
    site, _ = wound
    job, question, at, stream, _ = put(site, _TICKETS)
    assert minutes(site, at) == 15 and site.get(f"/api/jobs/{job}").json["status"] == "waiting_for_approval"
    shown = seen(site, job, question)
    assert shown["context"] == _TICKETS["context"] and shown["options"] == _TICKETS["options"], "unchanged"
    (_, name, event), (_, _, status) = stream.take(2)
    assert name == event["type"] == "question_asked" and set(event) == {"type", "questionId", "jobId", "question"}
    assert set(event["question"]) == {"question", "type", "responseType", "options", "context", "timeoutAt"}
    assert event["question"]["options"] == _TICKETS["options"] and event["question"]["timeoutAt"] == at
    assert (status["type"], status["jobId"], status["status"]) == ("status", job, "waiting_for_approval")
    reply = site.post(
        f"/api/questions/{question}/answer", {"response": {"type": "boolean", "value": True, "text": "Go"}}, role="member"
    )
    assert reply.json == {"success": True, "jobResumed": True}
    (_, name, event), (_, _, status) = stream.take(2)
    stream.close()
    assert name == event["type"] == "question_answered" and {"type", "questionId", "jobId", "response"} <= set(event)
    assert event["response"] == {"type": "boolean", "value": True, "text": "Go"} and status["status"] in ("pending", "running")
    shown = seen(site, job, question)
    assert (
        shown["status"] == "answered"
        and shown["response"] == event["response"]
        and shown["respondedBy"].startswith("human:member")
    )


def test_recovery_times_out_with_the_default(wound):
    site, clock = wound
    job, question, at, stream, _ = put(site, _FAILED)
    assert minutes(site, at) == 10 and site.get(f"/api/jobs/{job}").json["status"] == "waiting_for_input"
    assert seen(site, job, question)["defaultResponse"] == {"type": "choice", "value": "skip"}
    stream.take(2)
    clock.advance(minutes=11)
    site.desk.reconcile()
    (_, name, event), (_, _, status) = stream.take(2)
    stream.close()
    assert name == "question_timeout" and event["questionId"] == question and event["respondedBy"] == "system"
    assert status["status"] in ("pending", "running"), "the default resumes the job"
    assert seen(site, job, question)["status"] == "timeout"
    late = site.post(f"/api/questions/{question}/answer", {"response": {"type": "choice", "value": "retry"}})
    assert late.status == 409 and "timed out" in late.json["error"]["message"] and "--restart" in late.json["error"]["hint"]


def test_non_blocking_question_does_not_pause_the_job(wound):
    site, clock = wound
    job, question, at, stream, _ = put(site, _VERBOSE)
    stream.close()
    assert at is None and site.get(f"/api/jobs/{job}").json["status"] == "running"
    assert seen(site, job, question)["defaultResponse"]["value"] is False
    clock.advance(hours=25)
    site.desk.reconcile()
    assert seen(site, job, question)["status"] == "pending", "it can be answered later"
    body = {"response": {"type": "boolean", "value": True}}
    assert site.post(f"/api/questions/{question}/answer", body).json["success"] is True


def test_a_blocking_question_without_an_answer_fails_the_job(wound):
    site, clock = wound
    job, question, at, stream, _ = put(
        site, {"question": "What's the project deadline?", "type": "blocking", "responseType": "text"}
    )
    assert minutes(site, at) == 30
    stream.take(2)
    clock.advance(minutes=31)
    site.desk.reconcile()
    assert [data.get("status") for _, _, data in stream.take(2)][1] == "failed"
    stream.close()
    assert site.get(f"/api/jobs/{job}").json["status"] == "failed" and seen(site, job, question)["status"] == "timeout"
    again = {"response": {"type": "text", "value": "Friday"}, "restart": True}
    reply = site.post(f"/api/questions/{question}/answer", again)
    assert reply.status == 200 and reply.json["success"] is True, reply.raw
    assert site.get(f"/api/jobs/{job}").json["status"] == "pending", "the job was restarted with the answer"


# --- claims, filters, effects of an answer ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["field", "header"])
def test_asking_with_a_claim_keeps_the_claim(site, job, how):
    claim = site.post(f"/api/tasks/{job}/claim", {"worker": "w1"}, role="agent").json["claim"]["token"]
    body = {"question": "Which?", "type": "blocking", "responseType": "text", "metadata": {"trace": 7}}
    more, headers = ({"claim": claim}, {}) if how == "field" else ({}, {"Yourturn-Claim": claim})
    reply = site.post(f"/api/jobs/{job}/questions", {**body, **more}, role="agent", headers=headers)
    assert reply.status == 201, reply.raw
    assert seen(site, job, reply.json["questionId"])["metadata"] == {"trace": 7}
    answer = {"response": {"type": "text", "value": "this"}}
    assert site.post(f"/api/questions/{reply.json['questionId']}/answer", answer).json["jobResumed"] is True
    assert site.get(f"/api/jobs/{job}").json["status"] == "running", "the claim was kept"
    done = site.post(f"/api/tasks/{job}/complete", {"summary": "ok", **more}, role="agent", headers=headers)
    assert done.status == 200 and done.json["state"] == "done", done.raw


def test_invalid_claim_is_refused(site, job):
    body = {"question": "Which?", "type": "blocking", "responseType": "text", "claim": f"{job}.1.0000"}
    assert site.post(f"/api/jobs/{job}/questions", body, role="agent").code == "claim_lost"
    assert site.post(f"/api/jobs/{job}/questions", {**body, "claim": 7}, role="agent").status == 422
    assert site.get(f"/api/jobs/{job}/questions").json["questions"] == []


def test_errors_name_the_fields_as_they_are_sent(site, job):
    for body, words in (
        ({"question": "x", "type": "blocking"}, "responseType must be given"),
        ({**QUESTION, "timeout_hours": 1}, "'timeoutHours' is not known here"),
        ({"question": "x", "type": "non_blocking", "responseType": "text"}, "needs a defaultResponse"),
    ):
        error = site.post(f"/api/jobs/{job}/questions", body, role="agent").json["error"]
        assert words in error["message"] and "--" not in error["hint"] and "_" not in error["hint"], error
    error = site.get("/api/questions/pending?project=PROJ").json["error"]
    assert "projectId" in error["hint"] and "_" not in error["hint"]
    empty = site.post(f"/api/jobs/{job}/questions", {**QUESTION, "question": " "}, role="agent")
    assert (empty.status, empty.json["error"]["message"]) == (422, "question must not be empty")
    form = site.post(f"/api/jobs/{job}/questions", {**QUESTION, "type": "approval"}, role="agent")
    assert (form.status, form.json["error"]["hint"]) == (422, "Choose one of: boolean, approval.")
    assert "kind" not in form.json["error"]["message"]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_filters_apply_before_paging(new_address, dialect):
    from tests.fixtures.server import Site

    site = Site(new_address(dialect))
    try:
        wanted = {name: set() for name in ("blocking", "non_blocking", "approval", "error_recovery")}
        for at in range(160):
            job = site.desk.create("A job")["key"]
            kind = list(wanted)[at // 40]
            more = {"non_blocking": {"blocking": False, "default": "x"}}.get(kind, {})
            kinds = {"approval": ("permission", "approval", "checkpoint"), "error_recovery": ("recovery",)}.get(kind, ("input",))
            wanted[kind].add(site.desk.ask(job, "Which?", kinds[at % len(kinds)], **more)["id"])
        for kind, ids in wanted.items():
            pending = site.get(f"/api/questions/pending?type={kind}").json
            assert {q["id"] for q in pending["questions"]} == ids and pending["nextCursor"] is None, kind
            assert {q["type"] for q in pending["questions"]} == {kind}
            seen, cursor = [], ""
            while cursor is not None:
                page = site.get(f"/api/questions/pending?type={kind}&limit=7&cursor={cursor}").json
                seen, cursor = seen + [q["id"] for q in page["questions"]], page["nextCursor"]
            assert len(seen) == len(set(seen)) == 40 and set(seen) == ids
    finally:
        site.close()


def test_a_job_is_resumed_only_if_it_waited_and_goes_on(site):
    def answered(job, kind="input", after=None, **more):
        q = site.desk.ask(job, "Which?", kind, **more)["id"]
        after and after()
        body = {"response": {"value": True if kind == "permission" else "x"}}
        first = site.post(f"/api/questions/{q}/answer", body, headers={"Idempotency-Key": f"k-{q}"})
        again = site.post(f"/api/questions/{q}/answer", body, headers={"Idempotency-Key": f"k-{q}"})
        assert first.json == again.json and first.status == 200, first.raw
        return first.json["jobResumed"]

    job, need = (site.desk.create("A job")["key"] for _ in range(2))
    assert answered(job, blocking=False, default="x") is False, "nothing was paused"
    assert answered(job) is True
    site.desk.ask(job, "Another?")
    assert answered(job) is False and answered(job, "permission") is False, "another question is open"
    site.desk.hand_back(job)
    assert answered(job, after=lambda: site.desk.depend(job, need)) is False, "it depends on another task now"
    other = site.desk.create("A job", draft=True)["key"]
    assert answered(other) is False, "it is a draft"


def test_a_restart_with_a_late_answer_resumes_the_job(wound):
    site, clock = wound
    job = site.desk.create("A job")["key"]
    q = site.desk.ask(job, "Which?")["id"]
    clock.advance(minutes=31)
    site.desk.reconcile()
    body = {"response": {"type": "text", "value": "this"}, "restart": True}
    reply = site.post(f"/api/questions/{q}/answer", body, role="member")
    assert (reply.status, reply.json) == (200, {"success": True, "jobResumed": True}), "the right to answer includes the restart"
    assert site.post(f"/api/questions/{q}/answer", body, role="member").json["jobResumed"] is False, "already resumed"


def test_job_status_follows_the_open_questions(site, job):
    first = site.desk.ask(job, "Which?")["id"]
    second, third = site.desk.ask(job, "May I?", "permission")["id"], site.desk.ask(job, "And this?", "permission")["id"]
    stream = site.stream(f"?task={job}&only=status,question_answered&after={site.desk.desk_cursor()}")
    for q, value in ((first, "x"), (second, True), (third, True)):
        site.post(f"/api/questions/{q}/answer", {"response": {"value": value}})
    events = [(name, data.get("status")) for _, name, data in stream.take(5)]
    stream.close()
    assert [status for name, status in events if name == "status"] == ["waiting_for_approval", "pending"]
    assert [name for name, _ in events] == ["question_answered", "status", "question_answered", "question_answered", "status"]


def test_release_and_reclaim_by_a_person(site, job):
    for word in ("release", "reclaim"):
        site.desk.claim(job, "w1")
        assert site.post(f"/api/tasks/{job}/{word}", {"reason": "gone"}, role="viewer").status == 403
        assert site.post(f"/api/tasks/{job}/{word}", {"reason": "gone"}, role="member").json["state"] == "ready"
