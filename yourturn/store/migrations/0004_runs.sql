-- Why: a run is a task with a script. It has a journal of the calls that its script made, and the source that it runs.
ALTER TABLE tasks ADD COLUMN journal {big} NOT NULL DEFAULT 0;
ALTER TABLE questions ADD COLUMN step TEXT;
CREATE TABLE steps (
    task_id     {big} NOT NULL REFERENCES tasks (id),
    journal     {big} NOT NULL,
    place       TEXT NOT NULL,
    name        TEXT NOT NULL,
    agent       TEXT,
    digest      TEXT NOT NULL,
    call        TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('running', 'waiting', 'completed')),
    session_id  TEXT,
    seat        TEXT,
    result      TEXT,
    started_at  {big} NOT NULL,
    ended_at    {big},
    PRIMARY KEY (task_id, journal, place),
    CHECK ((status = 'completed') = (result IS NOT NULL)),
    CHECK ((status = 'completed') = (ended_at IS NOT NULL))
) {strict};
CREATE INDEX steps_open ON steps (task_id, journal, place) WHERE status <> 'completed';

CREATE TABLE programs (
    id       {id},
    task_id  {big} NOT NULL REFERENCES tasks (id),
    journal  {big} NOT NULL,
    at       {big} NOT NULL,
    file     TEXT NOT NULL,
    digest   TEXT NOT NULL,
    body     TEXT NOT NULL
) {strict};
CREATE INDEX programs_task ON programs (task_id, id);

-- Why: people come over HTTP, with passwords, sessions and one-time links.
ALTER TABLE users ADD COLUMN password TEXT;
CREATE TABLE logins (
    id            {id},
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    about         TEXT NOT NULL DEFAULT '',
    created_at    {big} NOT NULL,
    expires_at    {big} NOT NULL,
    ended_at      {big}
) {strict};
CREATE INDEX logins_actor ON logins (workspace_id, actor) WHERE ended_at IS NULL;

CREATE TABLE links (
    id            {id},
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    created_by    TEXT NOT NULL,
    created_at    {big} NOT NULL,
    expires_at    {big} NOT NULL,
    used_at       {big}
) {strict};

CREATE TABLE prefs (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    body          TEXT NOT NULL,
    PRIMARY KEY (workspace_id, actor)
) {strict};

CREATE TABLE rates (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    used_until    {big} NOT NULL,
    PRIMARY KEY (workspace_id, name)
) {strict};

CREATE INDEX questions_closed ON questions (workspace_id, responded_at) WHERE responded_at IS NOT NULL;
