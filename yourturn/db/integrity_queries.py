"""Integrity queries: find rows that violate an invariant, for `turn doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .reads import OURS, Reader
from .sql_loader import ENDED_STATES

_WITH_EVENTS = OURS.replace("WHERE", "JOIN events e ON e.task_id = t.id WHERE")
_ASKS = "EXISTS (SELECT 1 FROM questions q WHERE q.task_id = t.id AND q.status = 'pending'"
_WAITS = (
    "EXISTS (SELECT 1 FROM deps d JOIN tasks n ON n.id = d.needs_id "
    "WHERE d.task_id = t.id AND n.state NOT IN ('done', 'cancelled'))"
)
#: name -> a query for the keys of rows that should not exist.
VIOLATIONS = {
    "orphan": """SELECT what FROM (
        SELECT 'task ' || t.key AS what FROM tasks t LEFT JOIN projects p ON p.id = t.project_id
            LEFT JOIN tasks u ON u.id = t.parent_id WHERE p.id IS NULL OR (t.parent_id IS NOT NULL AND u.id IS NULL)
        UNION ALL SELECT 'question Q' || q.id FROM questions q LEFT JOIN tasks t ON t.id = q.task_id WHERE t.id IS NULL
        UNION ALL SELECT 'question Q' || q.id FROM questions q JOIN tasks t ON t.id = q.task_id
            JOIN projects p ON p.id = t.project_id WHERE p.workspace_id <> q.workspace_id
        UNION ALL SELECT 'note ' || o.id FROM notes o LEFT JOIN tasks t ON t.id = o.task_id WHERE t.id IS NULL
        UNION ALL SELECT 'dependency ' || d.task_id || ' on ' || d.needs_id FROM deps d
            LEFT JOIN tasks t ON t.id = d.task_id LEFT JOIN tasks n ON n.id = d.needs_id WHERE t.id IS NULL OR n.id IS NULL
        UNION ALL SELECT 'event ' || e.seq FROM events e LEFT JOIN tasks t ON t.id = e.task_id
            WHERE e.task_id IS NOT NULL AND t.id IS NULL
        UNION ALL SELECT 'project ' || p.key FROM projects p LEFT JOIN workspaces w ON w.id = p.workspace_id
            WHERE w.id IS NULL
        ) AS violations""",
    "unclaimed": f"SELECT t.key {OURS} AND t.state = 'working' "
    "AND (t.holder IS NULL OR t.claim_hash IS NULL OR t.lease_expires_at IS NULL)",
    "stray_claim": f"SELECT t.key {OURS} AND t.holder IS NOT NULL AND (t.state NOT IN ('working', 'human') OR t.epoch < 1)",
    "unasked": f"SELECT t.key {OURS} AND t.state = 'human' AND NOT {_ASKS} AND q.blocking = 1)",
    "unheld": (
        f"SELECT t.key {OURS} AND t.state <> 'human' AND {_ASKS} AND q.blocking = 1 "
        "AND NOT (t.state = 'review' AND coalesce(q.reason, '') = 'finished'))"
    ),
    "left_open": f"SELECT t.key {OURS} AND t.state IN ('done', 'cancelled', 'failed') AND {_ASKS})",
    "too_early": f"SELECT t.key {OURS} AND t.state = 'ready' AND {_WAITS}",
    "too_late": f"SELECT t.key {OURS} AND t.state = 'blocked' AND NOT {_WAITS}",
    "exhausted": f"SELECT t.key {OURS} AND t.retry_count >= t.max_retries "
    f"AND t.state NOT IN ({ENDED_STATES}) AND NOT {_ASKS} AND q.reason = 'retry_exhausted')",
    "in_clear": f"""SELECT what FROM (
        SELECT 'token ' || name AS what FROM tokens WHERE workspace_id = :workspace AND length(hash) <> 64
        UNION ALL SELECT 'session ' || id FROM logins WHERE workspace_id = :workspace AND length(hash) <> 64
        UNION ALL SELECT 'link ' || id FROM links WHERE workspace_id = :workspace AND length(hash) <> 64
        UNION ALL SELECT 'the password of ' || name FROM users WHERE workspace_id = :workspace AND password NOT LIKE 'scrypt$%'
        UNION ALL SELECT 'the claim on ' || t.key {OURS} AND length(t.claim_hash) <> 64
        UNION ALL SELECT 'event ' || e.seq FROM events e
            WHERE e.workspace_id = :workspace AND e.task_id IS NULL
            AND (e.data LIKE '%"yt!_%' ESCAPE '!' OR e.data LIKE '%"ys!_%' ESCAPE '!'
                 OR e.data LIKE '%"yl!_%' ESCAPE '!'
                 OR e.data LIKE '%scrypt$%')
        ) AS violations""",
}


def overdue(reader: Reader) -> int:
    return int(reader.rows(f"SELECT count(*) {OURS} AND t.due_at <= :now", now=reader.now)[0][0])


def violations(reader: Reader, name: str, limit: int = 100) -> list[str]:
    """The keys that a query of VIOLATIONS finds."""
    return [str(row[0]) for row in reader.rows(f"{VIOLATIONS[name]} LIMIT :limit", limit=limit)]


def edges(reader: Reader) -> list[Any]:
    """Dependencies (task, needs), by key."""
    return reader.rows(
        "SELECT t.key, n.key FROM deps d JOIN tasks t ON t.id = d.task_id JOIN tasks n ON n.id = d.needs_id "
        "JOIN projects p ON p.id = t.project_id WHERE p.workspace_id = :workspace"
    )


def claims(reader: Reader) -> Iterable[Any]:
    """All claims in the order of each task's chain: key, epoch of the row, data of the event."""
    return reader.rows(f"SELECT t.key, t.epoch, e.data {_WITH_EVENTS} AND e.action = 'claim' ORDER BY t.id, e.n")


def last_events(reader: Reader) -> Iterable[Any]:
    """key, state, data of the last event."""
    return reader.rows(f"SELECT t.key, t.state, e.data {_WITH_EVENTS} AND e.n = t.event_count")
