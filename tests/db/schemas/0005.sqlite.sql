-- Schema 5, as version 0.1.0 made it on sqlite. Frozen: never edit. Statements are parted by a line of ;;
CREATE TABLE schema_version (
    version     INTEGER PRIMARY KEY,
    applied_at  INTEGER NOT NULL
) STRICT
;;
CREATE TABLE workspaces (
    id             INTEGER PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    settings       TEXT NOT NULL DEFAULT '{}',
    next_question  INTEGER NOT NULL DEFAULT 1,
    event_count    INTEGER NOT NULL DEFAULT 0,
    event_head     TEXT NOT NULL DEFAULT '',
    created_at     INTEGER NOT NULL,
    fenced_at      INTEGER
) STRICT
;;
CREATE TABLE projects (
    id            INTEGER PRIMARY KEY,
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    key           TEXT NOT NULL,
    name          TEXT NOT NULL,
    settings      TEXT NOT NULL DEFAULT '{}',
    next_number   INTEGER NOT NULL DEFAULT 1,
    created_at    INTEGER NOT NULL,
    UNIQUE (workspace_id, key)
) STRICT
;;
CREATE TABLE users (
    id            INTEGER PRIMARY KEY,
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    created_at    INTEGER NOT NULL,
    removed_at    INTEGER,
    password      TEXT
) STRICT
;;
CREATE UNIQUE INDEX users_name ON users (workspace_id, name) WHERE removed_at IS NULL
;;
CREATE TABLE tokens (
    id            INTEGER PRIMARY KEY,
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'agent', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER,
    revoked_at    INTEGER,
    scopes        TEXT NOT NULL DEFAULT '',
    created_by    TEXT NOT NULL DEFAULT ''
) STRICT
;;
CREATE UNIQUE INDEX tokens_name ON tokens (workspace_id, name) WHERE revoked_at IS NULL
;;
CREATE TABLE logins (
    id            INTEGER PRIMARY KEY,
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    about         TEXT NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    ended_at      INTEGER
) STRICT
;;
CREATE INDEX logins_actor ON logins (workspace_id, actor) WHERE ended_at IS NULL
;;
CREATE TABLE links (
    id            INTEGER PRIMARY KEY,
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    created_by    TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    used_at       INTEGER
) STRICT
;;
CREATE TABLE prefs (
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    body          TEXT NOT NULL,
    PRIMARY KEY (workspace_id, actor)
) STRICT
;;
CREATE TABLE rates (
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    used_until    INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, name)
) STRICT
;;
CREATE TABLE tasks (
    id                INTEGER PRIMARY KEY,
    project_id        INTEGER NOT NULL REFERENCES projects (id),
    key               TEXT NOT NULL,
    title             TEXT NOT NULL CHECK (title <> ''),
    description       TEXT NOT NULL DEFAULT '',
    state             TEXT NOT NULL CHECK (state IN ('created', 'ready', 'blocked', 'working', 'human', 'review',
                                                     'done', 'failed', 'cancelled', 'deferred')),
    return_state      TEXT CHECK (return_state IN ('created', 'ready', 'blocked', 'working', 'review')),
    outcome           TEXT CHECK (outcome IN ('back', 'done')),
    priority          INTEGER NOT NULL DEFAULT 2 CHECK (priority BETWEEN 0 AND 4),
    type              TEXT NOT NULL DEFAULT 'task',
    complexity        TEXT NOT NULL DEFAULT 'medium',
    parent_id         INTEGER REFERENCES tasks (id),
    requires          TEXT CHECK (requires IN ('approval', 'review', 'content')),
    role              TEXT,
    labels            TEXT NOT NULL DEFAULT '[]',
    acceptance        TEXT NOT NULL DEFAULT '',
    retry_count       INTEGER NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
    max_retries       INTEGER NOT NULL DEFAULT 3 CHECK (max_retries >= 1),
    branch            TEXT,
    session_id        TEXT,
    workflow          TEXT,
    summary           TEXT NOT NULL DEFAULT '',
    failure           TEXT CHECK (failure IN ('error', 'stuck', 'timeout')),
    reason            TEXT NOT NULL DEFAULT '',
    external_id       TEXT,
    holder            TEXT,
    claimed_by        TEXT,
    epoch             INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    claim_hash        TEXT,
    lease             INTEGER,
    lease_expires_at  INTEGER,
    wake_at           INTEGER,
    accept_at         INTEGER,
    due_at            INTEGER,
    event_count       INTEGER NOT NULL DEFAULT 0,
    event_head        TEXT NOT NULL DEFAULT '',
    version           INTEGER NOT NULL DEFAULT 0,
    created_by        TEXT NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    ended_at          INTEGER,
    extra             TEXT,
    host              TEXT,
    seat              TEXT,
    journal           INTEGER NOT NULL DEFAULT 0,
    UNIQUE (project_id, key),
    CHECK ((holder IS NULL) = (lease_expires_at IS NULL)),
    CHECK ((holder IS NULL) = (claim_hash IS NULL)),
    CHECK ((holder IS NULL) = (claimed_by IS NULL)),
    CHECK ((holder IS NULL) = (lease IS NULL)),
    CHECK (outcome IS NULL OR state = 'human'),
    CHECK (parent_id IS NULL OR parent_id <> id),
    CHECK (lease_expires_at IS NULL OR (due_at IS NOT NULL AND due_at <= lease_expires_at)),
    CHECK (wake_at IS NULL OR (due_at IS NOT NULL AND due_at <= wake_at)),
    CHECK (accept_at IS NULL OR (due_at IS NOT NULL AND due_at <= accept_at)),
    CHECK (state <> 'working' OR holder IS NOT NULL),
    CHECK (holder IS NULL OR state IN ('working', 'human')),
    CHECK (holder IS NULL OR epoch > 0),
    CHECK ((state IN ('done', 'cancelled', 'failed')) = (ended_at IS NOT NULL)),
    CHECK ((state IN ('human', 'deferred')) = (return_state IS NOT NULL)),
    CHECK (failure IS NULL OR state = 'failed'),
    CHECK (wake_at IS NULL OR state = 'deferred'),
    CHECK (accept_at IS NULL OR state = 'review')
) STRICT
;;
CREATE INDEX tasks_state ON tasks (project_id, state, priority, created_at, id) WHERE state <> 'done'
;;
CREATE INDEX tasks_due    ON tasks (due_at, id) WHERE due_at IS NOT NULL
;;
CREATE INDEX tasks_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL
;;
CREATE UNIQUE INDEX tasks_external ON tasks (project_id, external_id) WHERE external_id IS NOT NULL
;;
CREATE TABLE deps (
    task_id   INTEGER NOT NULL REFERENCES tasks (id),
    needs_id  INTEGER NOT NULL REFERENCES tasks (id),
    warned    INTEGER NOT NULL DEFAULT 0 CHECK (warned IN (0, 1)),
    PRIMARY KEY (task_id, needs_id),
    CHECK (task_id <> needs_id)
) STRICT
;;
CREATE INDEX deps_needs ON deps (needs_id)
;;
CREATE TABLE questions (
    workspace_id   INTEGER NOT NULL REFERENCES workspaces (id),
    id             INTEGER NOT NULL,
    task_id        INTEGER NOT NULL REFERENCES tasks (id),
    kind           TEXT NOT NULL CHECK (kind IN ('work', 'approval', 'input', 'review', 'content', 'escalation',
                                                 'checkpoint', 'permission', 'recovery')),
    blocking       INTEGER NOT NULL CHECK (blocking IN (0, 1)),
    text           TEXT NOT NULL CHECK (text <> ''),
    context        TEXT,
    reason         TEXT,
    urgency        TEXT NOT NULL CHECK (urgency IN ('low', 'normal', 'high')),
    response_type  TEXT NOT NULL CHECK (response_type IN ('text', 'choice', 'boolean', 'approval', 'number')),
    options        TEXT NOT NULL DEFAULT '[]',
    multi          INTEGER NOT NULL DEFAULT 0 CHECK (multi IN (0, 1)),
    allow_other    INTEGER NOT NULL DEFAULT 0 CHECK (allow_other IN (0, 1)),
    grp            TEXT,
    default_value  TEXT,
    timeout_at     INTEGER,
    timeout        INTEGER,
    on_timeout     TEXT NOT NULL CHECK (on_timeout IN ('default', 'fail', 'stuck', 'defer', 'remind', 'escalate', 'keep')),
    reviewer       TEXT,
    confidence     REAL,
    action         TEXT,
    digest         TEXT,
    metadata       TEXT,
    status         TEXT NOT NULL CHECK (status IN ('pending', 'answered', 'timeout', 'cancelled')),
    response       TEXT,
    close_reason   TEXT,
    asked_by       TEXT NOT NULL,
    asked_at       INTEGER NOT NULL,
    responded_by   TEXT,
    responded_at   INTEGER,
    used_by        TEXT,
    step           TEXT,
    PRIMARY KEY (workspace_id, id),
    CHECK ((status = 'pending') = (responded_at IS NULL)),
    CHECK ((status = 'pending') = (responded_by IS NULL)),
    CHECK (status <> 'answered' OR (response IS NOT NULL AND substr(responded_by, 1, 6) = 'human:')),
    CHECK (kind IN ('input', 'escalation', 'recovery') OR response_type IN ('approval', 'boolean')),
    CHECK (blocking = 1 OR default_value IS NOT NULL),
    CHECK (blocking = 1 OR timeout_at IS NULL),
    CHECK (default_value IS NULL OR kind IN ('input', 'recovery')),
    CHECK (kind <> 'permission' OR digest IS NOT NULL)
) STRICT
;;
CREATE INDEX questions_task  ON questions (task_id, id)
;;
CREATE INDEX questions_inbox ON questions (workspace_id, (CASE urgency WHEN 'high' THEN 0 WHEN 'normal' THEN 1 ELSE 2 END), id)
    WHERE status = 'pending'
;;
CREATE INDEX questions_closed ON questions (workspace_id, responded_at) WHERE responded_at IS NOT NULL
;;
CREATE UNIQUE INDEX questions_exhausted ON questions (task_id)
    WHERE status = 'pending' AND reason = 'retry_exhausted' AND asked_by = 'system'
;;
CREATE TABLE notes (
    id       INTEGER PRIMARY KEY,
    task_id  INTEGER NOT NULL REFERENCES tasks (id),
    author   TEXT NOT NULL,
    text     TEXT NOT NULL CHECK (text <> ''),
    at       INTEGER NOT NULL
) STRICT
;;
CREATE INDEX notes_task ON notes (task_id, id)
;;
CREATE TABLE steps (
    task_id     INTEGER NOT NULL REFERENCES tasks (id),
    journal     INTEGER NOT NULL,
    place       TEXT NOT NULL,
    name        TEXT NOT NULL,
    agent       TEXT,
    digest      TEXT NOT NULL,
    call        TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('running', 'waiting', 'completed')),
    session_id  TEXT,
    seat        TEXT,
    result      TEXT,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    PRIMARY KEY (task_id, journal, place),
    CHECK ((status = 'completed') = (result IS NOT NULL)),
    CHECK ((status = 'completed') = (ended_at IS NOT NULL))
) STRICT
;;
CREATE INDEX steps_open ON steps (task_id, journal, place) WHERE status <> 'completed'
;;
CREATE TABLE programs (
    id       INTEGER PRIMARY KEY,
    task_id  INTEGER NOT NULL REFERENCES tasks (id),
    journal  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    file     TEXT NOT NULL,
    digest   TEXT NOT NULL,
    body     TEXT NOT NULL
) STRICT
;;
CREATE INDEX programs_task ON programs (task_id, id)
;;
CREATE TABLE events (
    seq           INTEGER PRIMARY KEY,
    xid           INTEGER NOT NULL DEFAULT 0,
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    task_id       INTEGER REFERENCES tasks (id),
    n             INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    actor         TEXT NOT NULL,
    action        TEXT NOT NULL,
    data          TEXT NOT NULL,
    prev          TEXT NOT NULL,
    hash          TEXT NOT NULL
) STRICT
;;
CREATE UNIQUE INDEX events_chain ON events (task_id, n) WHERE task_id IS NOT NULL
;;
CREATE UNIQUE INDEX events_office ON events (workspace_id, n) WHERE task_id IS NULL
;;
CREATE TABLE output (
    id       INTEGER PRIMARY KEY,
    task_id  INTEGER NOT NULL REFERENCES tasks (id),
    epoch    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    sort     TEXT NOT NULL,
    text     TEXT NOT NULL
) STRICT
;;
CREATE INDEX output_task ON output (task_id, id)
;;
CREATE TABLE patches (
    task_id  INTEGER PRIMARY KEY REFERENCES tasks (id),
    epoch    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    base     TEXT NOT NULL,
    body     TEXT NOT NULL
) STRICT
;;
CREATE TABLE replies (
    workspace_id  INTEGER NOT NULL REFERENCES workspaces (id),
    key           TEXT NOT NULL,
    actor         TEXT NOT NULL,
    request       TEXT NOT NULL,
    task_id       INTEGER,
    question_id   INTEGER,
    epoch         INTEGER,
    at            INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, actor, key)
) STRICT
;;
CREATE TRIGGER events_fixed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
;;
CREATE TRIGGER events_kept BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
;;
CREATE TRIGGER events_new BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq)
  OR EXISTS (SELECT 1 FROM events WHERE task_id = NEW.task_id AND n = NEW.n)
  OR EXISTS (SELECT 1 FROM events WHERE NEW.task_id IS NULL AND task_id IS NULL AND workspace_id = NEW.workspace_id AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
