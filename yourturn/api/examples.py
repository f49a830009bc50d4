"""Examples of the OpenAPI document. The tests send them."""

from __future__ import annotations

from typing import Any

_QUESTION = {"text": "JWT or sessions?", "options": ["jwt", "sessions"], "timeout": "30m"}

#: Bodies of requests, by verb or route.
REQUESTS: dict[str, Any] = {
    "POST /api/tasks": {"title": "Add login", "priority": 1, "labels": ["web"]},
    "POST /api/tasks/{key}/questions": _QUESTION,
    "POST /api/claims": {"worker": "w1", "project": "PROJ"},
    "POST /api/questions/{id}/answer": {"response": {"type": "choice", "value": "jwt"}},
    "POST /api/questions/{id}/cancel": {"reason": "Not needed any more"},
    "POST /api/questions/{id}/assign": {"reviewer": "ben"},
    "POST /api/jobs/{id}/questions": {
        "question": "Which persona should I target?",
        "type": "blocking",
        "responseType": "choice",
        "options": [{"label": "Developers", "value": "dev"}, {"label": "Designers", "value": "design"}],
        "timeoutMinutes": 30,
    },
    "POST /api/desk/{method}": {"args": [], "fields": {}},
    "ask": _QUESTION,
    "flag": {"text": "Two libraries fit. Which?", "reason": "decision_needed"},
    "claim": {"worker": "w1", "lease": "30m"},
    "complete": {"summary": "Login with JWT", "claim": "PROJ-1.1.5f2c"},
    "answer": {"value": "jwt"},
    "approve": {"text": "Looks good"},
    "reject": {"text": "softer, please"},
    "note": {"text": "PR is up"},
    "update": {"priority": 0},
    "defer": {"until": "2d"},
    "decompose": {"children": ["Schema", "API"]},
    "dep_add": {"needs": ["PROJ-2"]},
    "dep_remove": {"needs": ["PROJ-2"]},
    "assign": {"reviewer": "ben"},
}

#: Bodies of responses, by route.
RESPONSES: dict[str, Any] = {
    "POST /api/jobs/{id}/questions": {"questionId": "Q17", "timeoutAt": "2026-11-15T12:30:00.000000Z"},
    "GET /api/jobs/{id}": {"id": "PROJ-1", "status": "waiting_for_input", "projectId": "PROJ"},
    "GET /api/me": {"actor": "human:ana", "role": "member", "may": ["any", "holder", "human"], "workspace": "default"},
    "GET /api/changes": {"cursor": "0.1.42"},
    "POST /api/questions/{id}/answer": {"success": True, "jobResumed": True},
}

STREAM = (
    "id: 0.1.42:0\nevent: question_asked\n"
    'data: {"type": "question_asked", "questionId": "Q17", "jobId": "PROJ-1", "question": {"question": "JWT or sessions?"}}\n\n'
)
