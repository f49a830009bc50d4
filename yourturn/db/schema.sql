-- The tables, for SQLite and PostgreSQL.
--
-- The words in braces are the dialect's (sqlite.py, postgres.py): {id} is a primary key that the database assigns, {big} a 64-bit
-- integer, {strict} the end of a table. {xid} and {this_xid} are the writing transaction (PostgreSQL only). {append_only} has the
-- triggers that refuse changes of events. {checks}: on PostgreSQL a trigger replaces the CHECKs (postgres.sql). {of_workspace} and
-- {of_task} are references on SQLite only: PostgreSQL would lock the other row for each event.
--
-- Every index costs a page of each move that touches it. So one index serves "tasks in this state", in the order in which work is
-- claimed, and leaves out `done`.
--
-- core/rules.py decides all of this. The CHECKs and partial unique indexes are the last guard: they turn a bug into an error
-- instead of a wrong row.
--
-- Times are microseconds since 1970 in UTC. Yes and no are 1 and 0. JSON is text.
--
-- A claim is part of its task's row: claiming, renewing, losing and finishing are each one write to one row, and the row that a
-- late writer wants to change is the row that refuses it. `due_at` is the next time at which a move of the system may be due;
-- finding due moves reads one index. `version` grows with every write, and writers compare it.

CREATE TABLE schema_version (
    version     INTEGER PRIMARY KEY,
    applied_at  {big} NOT NULL
) {strict};

CREATE TABLE workspaces (
    id             {id},
    name           TEXT NOT NULL UNIQUE,
    settings       TEXT NOT NULL DEFAULT '{{}}',
    next_question  {big} NOT NULL DEFAULT 1,
    event_count    {big} NOT NULL DEFAULT 0,       -- number of events without a task
    event_head     TEXT NOT NULL DEFAULT '',
    created_at     {big} NOT NULL,
    fenced_at      {big}                           -- last restore: claims and permissions from before are void
) {strict};

CREATE TABLE projects (
    id            {id},
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    key           TEXT NOT NULL,
    name          TEXT NOT NULL,
    settings      TEXT NOT NULL DEFAULT '{{}}',
    next_number   {big} NOT NULL DEFAULT 1,
    created_at    {big} NOT NULL,
    UNIQUE (workspace_id, key)
) {strict};

CREATE TABLE users (
    id            {id},
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    created_at    {big} NOT NULL,
    removed_at    {big},
    password      TEXT                             -- scrypt hash with its parameters
) {strict};
CREATE UNIQUE INDEX users_name ON users (workspace_id, name) WHERE removed_at IS NULL;

-- Access tokens. A token is shown once; only its hash is stored.
CREATE TABLE tokens (
    id            {id},
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'agent', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    created_at    {big} NOT NULL,
    expires_at    {big},
    revoked_at    {big},
    scopes        TEXT NOT NULL DEFAULT '',        -- separated by spaces; empty: the default scopes of the role
    created_by    TEXT NOT NULL DEFAULT ''
) {strict};
CREATE UNIQUE INDEX tokens_name ON tokens (workspace_id, name) WHERE revoked_at IS NULL;

-- Browser sessions. Only the hash of the secret is stored.
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

-- One-time login links.
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

-- Preferences of a person, as JSON. No rule reads them.
CREATE TABLE prefs (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    body          TEXT NOT NULL,
    PRIMARY KEY (workspace_id, actor)
) {strict};

-- Rate limits: the time until which an allowance is used up. A row of the past has no effect.
CREATE TABLE rates (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    used_until    {big} NOT NULL,
    PRIMARY KEY (workspace_id, name)
) {strict};

CREATE TABLE tasks (
    id                {id},
    project_id        {big} NOT NULL REFERENCES projects (id),
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
    parent_id         {big} REFERENCES tasks (id),
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
    epoch             {big} NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    claim_hash        TEXT,
    lease             {big},
    lease_expires_at  {big},
    wake_at           {big},
    accept_at         {big},                       -- unused since schema 6: SQLite cannot drop a column that a CHECK names
    due_at            {big},
    event_count       {big} NOT NULL DEFAULT 0,
    event_head        TEXT NOT NULL DEFAULT '',
    version           {big} NOT NULL DEFAULT 0,
    created_by        TEXT NOT NULL,
    created_at        {big} NOT NULL,
    updated_at        {big} NOT NULL,
    ended_at          {big},
    extra             TEXT,
    host              TEXT,                        -- machine of its agent session; NULL without a session
    seat              TEXT,                        -- location of the session, as JSON: agent, folder, base commit
    journal           {big} NOT NULL DEFAULT 0,    -- runs: number of the current journal
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
) {strict};
CREATE INDEX tasks_state ON tasks (project_id, state, priority, created_at, id) WHERE state <> 'done';
CREATE INDEX tasks_due    ON tasks (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX tasks_external ON tasks (project_id, external_id) WHERE external_id IS NOT NULL;

-- Dependencies: task_id waits for needs_id. A parent waits for its children.
CREATE TABLE deps (
    task_id   {big} NOT NULL REFERENCES tasks (id),
    needs_id  {big} NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (task_id, needs_id),
    CHECK (task_id <> needs_id)
) {strict};
CREATE INDEX deps_needs ON deps (needs_id);

CREATE TABLE questions (
    workspace_id   {big} NOT NULL {of_workspace},
    id             {big} NOT NULL,
    task_id        {big} NOT NULL REFERENCES tasks (id),
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
    timeout_at     {big},
    timeout        {big},
    on_timeout     TEXT NOT NULL CHECK (on_timeout IN ('default', 'fail', 'stuck', 'defer', 'remind', 'escalate', 'keep', 'accept')),
    reviewer       TEXT,
    confidence     {real},
    action         TEXT,
    digest         TEXT,
    metadata       TEXT,
    status         TEXT NOT NULL CHECK (status IN ('pending', 'answered', 'timeout', 'cancelled')),
    response       TEXT,
    close_reason   TEXT,
    asked_by       TEXT NOT NULL,
    asked_at       {big} NOT NULL,
    responded_by   TEXT,
    responded_at   {big},
    used_by        TEXT,                           -- permissions: the call that used it
    step           TEXT,                           -- runs: the asking step, 'journal/place'
    PRIMARY KEY (workspace_id, id),
    CHECK ((status = 'pending') = (responded_at IS NULL)),
    CHECK ((status = 'pending') = (responded_by IS NULL)),
    CHECK (status <> 'answered' OR (response IS NOT NULL AND substr(responded_by, 1, 6) = 'human:')),
    CHECK (kind IN ('input', 'escalation', 'recovery') OR response_type IN ('approval', 'boolean')),
    CHECK (blocking = 1 OR default_value IS NOT NULL),
    CHECK (blocking = 1 OR timeout_at IS NULL),
    CHECK (default_value IS NULL OR kind IN ('input', 'recovery')),
    CHECK (kind <> 'permission' OR digest IS NOT NULL)
) {strict};
CREATE INDEX questions_task  ON questions (task_id, responded_at, id);
CREATE INDEX questions_inbox ON questions (workspace_id, (CASE urgency WHEN 'high' THEN 0 WHEN 'normal' THEN 1 ELSE 2 END), id)
    WHERE status = 'pending';
CREATE INDEX questions_closed ON questions (workspace_id, responded_at) WHERE responded_at IS NOT NULL;
CREATE UNIQUE INDEX questions_exhausted ON questions (task_id)
    WHERE status = 'pending' AND reason = 'retry_exhausted' AND asked_by = 'system';

CREATE TABLE notes (
    id       {id},
    task_id  {big} NOT NULL REFERENCES tasks (id),
    author   TEXT NOT NULL,
    text     TEXT NOT NULL CHECK (text <> ''),
    at       {big} NOT NULL
) {strict};
CREATE INDEX notes_task ON notes (task_id, id);

-- The journal of a run: one row per durable call of its script. `place` is the call index, padded so that texts sort in the order of
-- the calls; a step that a changed script has superseded has the prefix ~. A completed step never changes.
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

-- Sources of runs. The newest row is used where the script's file does not exist.
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

-- The event log, append-only. An event is written by the commit of its move.
-- Each task has its own chain, so that tasks do not wait for each other: `n` numbers it, `prev` and `hash` link it.
CREATE TABLE events (
    seq           {id},
    xid           {xid} NOT NULL DEFAULT {this_xid},
    workspace_id  {big} NOT NULL {of_workspace},
    task_id       {big} {of_task},
    n             {big} NOT NULL,
    at            {big} NOT NULL,
    actor         TEXT NOT NULL,
    action        TEXT NOT NULL,
    data          TEXT NOT NULL,
    prev          TEXT NOT NULL,
    hash          TEXT NOT NULL
) {strict};
CREATE UNIQUE INDEX events_chain ON events (task_id, n) WHERE task_id IS NOT NULL;
CREATE UNIQUE INDEX events_office ON events (workspace_id, n) WHERE task_id IS NULL;
{xid_index}

-- Output of agent sessions, line by line. Not part of the event log; old lines are deleted.
CREATE TABLE output (
    id       {id},
    task_id  {big} NOT NULL REFERENCES tasks (id),
    epoch    {big} NOT NULL,
    at       {big} NOT NULL,
    sort     TEXT NOT NULL,
    text     TEXT NOT NULL
) {strict};
CREATE INDEX output_task ON output (task_id, id);

-- Uncommitted work of a parked session, as a patch on the commit `base`, so that another machine can continue.
CREATE TABLE patches (
    task_id  {big} PRIMARY KEY REFERENCES tasks (id),
    epoch    {big} NOT NULL,
    at       {big} NOT NULL,
    base     TEXT NOT NULL,
    body     TEXT NOT NULL
) {strict};

-- Running workers, and the tasks that they take. A worker renews `seen_at` and deletes its row when it ends; an old `seen_at` means that
-- it was killed (desk/worker_registry.py). No rule reads this table, and no event records it.
CREATE TABLE workers (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    name          TEXT NOT NULL,
    host          TEXT NOT NULL,
    agents        TEXT NOT NULL,                   -- separated by spaces; empty: takes only runs
    project_id    {big} REFERENCES projects (id),  -- takes only tasks of this project
    epic_id       {big} REFERENCES tasks (id),     -- takes only descendants of this task
    role          TEXT,                            -- takes only tasks of this role or without a role
    runs          INTEGER NOT NULL CHECK (runs IN (0, 1)),
    parallel      INTEGER NOT NULL CHECK (parallel >= 1),
    started_at    {big} NOT NULL,
    seen_at       {big} NOT NULL,
    PRIMARY KEY (workspace_id, actor, name)
) {strict};

-- Idempotency keys: the request, and the result that a repeated request gets.
CREATE TABLE replies (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    key           TEXT NOT NULL,
    actor         TEXT NOT NULL,
    request       TEXT NOT NULL,
    task_id       {big},
    question_id   {big},
    epoch         {big},
    at            {big} NOT NULL,
    PRIMARY KEY (workspace_id, actor, key)
) {strict};

{append_only}
{checks}
