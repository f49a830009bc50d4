"""Questions of jobs: requests, answers and events in the words of programs that know jobs."""

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
    (found,) = site.get(f"/api/jobs/{job}/questions").json["questions"]
    assert found == {
        "id": reply.json["questionId"], "jobId": job, "workspaceId": "default", "projectId": "PROJ", "type": "blocking",
        "question": QUESTION["question"], "context": QUESTION["context"], "status": "pending", "responseType": "choice",
        "options": [
            {"id": "dev", "label": "Developers", "value": "dev", "description": "They build it"},
            {"id": "design", "label": "Designers", "value": "design", "description": ""},
        ],
        "response": None, "respondedBy": None, "respondedAt": None, "timeoutAt": reply.json["timeoutAt"], "defaultResponse": None,
        "metadata": None, "createdAt": found["createdAt"],
    }  # fmt: skip
    assert site.get(f"/api/jobs/{job}").json == {"id": job, "status": "waiting_for_input", "projectId": "PROJ"}


def test_a_person_answers_and_the_job_goes_on(site, job):
    question = asked(site, job)
    reply = site.post(f"/api/questions/{question}/answer", {"response": {"type": "choice", "value": "dev", "text": "For now"}})
    assert reply.status == 200 and reply.json == {"success": True, "jobResumed": True}
    (found,) = site.get(f"/api/jobs/{job}/questions").json["questions"]
    assert found["status"] == "answered" and found["respondedBy"].startswith("human:admin")
    assert found["response"] == {"type": "choice", "value": "dev", "text": "For now"}
    assert site.get(f"/api/jobs/{job}").json["status"] == "pending"


def test_a_job_goes_on_when_the_last_question_is_answered(site, job):
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
def test_types_are_kinds(site, job, type_, response_type, kind, status, more):
    question = asked(site, job, type=type_, responseType=response_type, options=[], timeoutMinutes=None, **more)
    found = site.get(f"/api/questions/{question}").json
    assert (found["kind"], found["blocking"]) == (kind, type_ != "non_blocking")
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


def test_what_waits_for_a_workspace(site, job):
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


def test_the_first_answer_wins_and_the_second_is_told(site, job):
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
    told = stream.take(4)
    stream.close()
    assert [name for _, name, _ in told] == ["question_asked", "status", "question_answered", "status"]
    first = told[0][2]
    assert first == {
        "type": "question_asked", "questionId": question, "jobId": job,
        "question": {
            "question": QUESTION["question"], "type": "blocking", "responseType": "choice", "context": QUESTION["context"],
            "options": first["question"]["options"], "timeoutAt": first["question"]["timeoutAt"],
        },
    }  # fmt: skip
    assert [o["value"] for o in first["question"]["options"]] == ["dev", "design"]
    assert told[1][2] == {"type": "status", "jobId": job, "status": "waiting_for_input", "state": "human"}
    answered = told[2][2]
    assert (answered["type"], answered["questionId"], answered["jobId"]) == ("question_answered", question, job)
    assert answered["response"] == {"type": "choice", "value": "dev"}
    assert told[3][2]["status"] == "pending"
