-- Queries by name. :name is a parameter, {word} a word of the dialect; {task}, {question}, {step} and {program} are column lists.

-- name: version
SELECT max(version) FROM schema_version;

-- name: workspace
SELECT id, name, settings, created_at, fenced_at FROM workspaces WHERE name = :name;

-- name: task
SELECT {task}, p.workspace_id, p.key, p.name, p.next_number, p.settings, w.settings, w.fenced_at, {related}, {now}
FROM tasks t JOIN projects p ON p.id = t.project_id JOIN workspaces w ON w.id = p.workspace_id
WHERE t.id = :id AND p.workspace_id = :workspace;

-- name: task_for_update
SELECT {task}, p.workspace_id, p.key, p.name, p.next_number, p.settings, w.settings, w.fenced_at, {related}, {now}
FROM tasks t JOIN projects p ON p.id = t.project_id JOIN workspaces w ON w.id = p.workspace_id
WHERE t.id = :id AND p.workspace_id = :workspace {lock_task};

-- name: named_task
SELECT t.id, t.key, t.title, p.key, NULL, NULL, NULL FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND p.key = :project AND t.key = :key;

-- name: named_question
SELECT t.id, t.key, q.text, '', q.id, NULL, NULL FROM questions q JOIN tasks t ON t.id = q.task_id
WHERE q.workspace_id = :workspace AND q.id = :number;

-- name: named
-- Everything that a name can mean: a task's key, a question's number, an id that a task had in another tracker.
SELECT t.id, t.key, t.title, p.key, NULL, NULL, NULL FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND p.key = :project AND t.key = :key
UNION ALL
SELECT t.id, t.key, q.text, '', q.id, NULL, NULL FROM questions q JOIN tasks t ON t.id = q.task_id
WHERE q.workspace_id = :workspace AND q.id = :number
UNION ALL
SELECT t.id, t.key, t.title, p.key, NULL, t.external_id, t.extra FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND t.external_id IN (:text, :id);

-- name: external
SELECT key FROM tasks WHERE project_id = :project AND external_id = :external;

-- name: pending
-- By responded_at, not by status: the index of a task's questions has the open ones side by side.
SELECT {question} FROM questions q WHERE q.task_id = :id AND q.responded_at IS NULL ORDER BY q.id;

-- name: latest
SELECT {question} FROM questions q WHERE q.task_id = :id ORDER BY q.responded_at DESC, q.id DESC LIMIT 1;

-- name: pending_or_changed
-- The open questions of a task, the named one, and those that were closed at :at.
-- Each part has an index; for an OR, planners may read all questions of the task.
SELECT {question} FROM questions q WHERE q.task_id = :id AND q.responded_at IS NULL
UNION SELECT {question} FROM questions q WHERE q.task_id = :id AND q.responded_at = :at
UNION SELECT {question} FROM questions q WHERE q.workspace_id = :workspace AND q.id = :question AND q.task_id = :id
ORDER BY id;

-- name: question
SELECT {question} FROM questions q WHERE q.workspace_id = :workspace AND q.id = :id;

-- name: question_and_key
SELECT {question}, t.key FROM questions q JOIN tasks t ON t.id = q.task_id WHERE q.workspace_id = :workspace AND q.id = :id;

-- name: neighbours
SELECT 'needs', t.id, t.key, t.state, t.reason
FROM deps d JOIN tasks t ON t.id = d.needs_id WHERE d.task_id = :id AND t.state NOT IN ({resolved})
UNION ALL
SELECT 'dependent', t.id, t.key, t.state, ''
FROM deps d JOIN tasks t ON t.id = d.task_id WHERE d.needs_id = :id AND t.state NOT IN ({ended})
UNION ALL
SELECT 'child', t.id, t.key, t.state, ''
FROM tasks t WHERE t.parent_id = :id AND t.state NOT IN ({ended})
UNION ALL
SELECT 'parent', t.id, t.key, t.state, t.reason
FROM tasks c JOIN tasks t ON t.id = c.parent_id WHERE c.id = :id
UNION ALL
SELECT 'parts', 0, '', '', '' WHERE EXISTS (SELECT 1 FROM tasks t WHERE t.parent_id = :id);

-- name: refs
SELECT t.id, t.key, t.state, t.reason FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND t.id {these} ORDER BY t.id;

-- name: refs_for_update
SELECT t.id, t.key, t.state, t.reason FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND t.id {these} ORDER BY t.id {lock_task};

-- name: project
SELECT p.id, p.workspace_id, p.key, p.name, p.next_number, p.settings, w.settings, w.fenced_at, {now}
FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE p.workspace_id = :workspace AND p.key = :key;

-- name: project_for_update
SELECT p.id, p.workspace_id, p.key, p.name, p.next_number, p.settings, w.settings, w.fenced_at, {new_id}, {now}
FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE p.workspace_id = :workspace AND p.key = :key {lock_project};

-- name: reaches
-- True if :from already waits for :to, directly or indirectly. Each task is visited once.
WITH RECURSIVE seen (id) AS (
    SELECT {cast_from}
    UNION
    SELECT d.needs_id FROM seen JOIN deps d ON d.task_id = seen.id
)
SELECT 1 FROM seen WHERE id = :to LIMIT 1;

-- name: pick
-- The next workable task by priority, age and id; and whether any move is due.
-- The inner query locks one row and skips locked ones; only then its columns are read. {project_columns}: its project, unless the
-- transaction has read it.
WITH picked AS {materialized} (
    SELECT t.id, t.version FROM tasks t {by_state}
    WHERE {workable} {only}
    ORDER BY t.priority, t.created_at, t.id LIMIT 1 {skip_locked})
SELECT {any_due}, {task}{project_columns}, {related_picked}, {now} FROM picked c JOIN tasks t ON t.id = c.id{join_project};

-- name: due
-- The + makes planners use the index on due_at, which is almost empty, and not the one of the project.
SELECT t.id FROM tasks t JOIN projects p ON p.id = +t.project_id
WHERE t.due_at <= :now AND p.workspace_id = :workspace ORDER BY t.due_at, t.id LIMIT :limit;

-- name: anything_due
-- The time (:now, or the database's), and whether any move is due by then.
SELECT coalesce(CAST(:now AS {big}), {moment}), {any_due};

-- name: take_numbers
-- SQLite: the highest number plus one, as writers queue and questions are never deleted.
{take_numbers};

-- name: next_number
UPDATE projects SET next_number = :number + 1 WHERE id = :id AND next_number = :number;

-- name: insert_note
INSERT INTO notes (task_id, author, text, at) VALUES (:task, :author, :text, :at);

-- name: notes_written
SELECT author, text, at FROM notes WHERE task_id = :task AND at = :at ORDER BY id;

-- name: followed
-- The system's moves of other tasks in the commit of a move at :at.
SELECT t.key, e.data FROM events e JOIN tasks t ON t.id = e.task_id
WHERE e.seq > (SELECT min(seq) FROM events WHERE task_id = :task AND at = :at) AND e.task_id <> :task AND e.at = :at
  AND e.actor = 'system' AND e.workspace_id = :workspace ORDER BY e.seq;

-- name: insert_dep
INSERT INTO deps (task_id, needs_id) VALUES (:task, :needs) ON CONFLICT DO NOTHING;

-- name: raise_version
UPDATE tasks SET version = version + 1 WHERE id = :id;

-- name: delete_dep
DELETE FROM deps WHERE task_id = :task AND needs_id = :needs;

-- name: insert_event
-- {slot}: not before that of the previous event in its chain, nor before that of this transaction's own events (event_log.py).
INSERT INTO events (xid, workspace_id, task_id, n, at, actor, action, data, prev, hash)
VALUES ({slot}, :workspace, :task, :n, :at, :actor, :action, :data, :prev, :hash);

-- name: insert_events
-- Several events in one slot.
INSERT INTO events (xid, workspace_id, task_id, n, at, actor, action, data, prev, hash)
SELECT {slot}, :workspace, v.task, v.n, v.at, v.actor, v.action, v.data, v.prev, v.hash
FROM (VALUES (CAST(:task AS {big}), CAST(:n AS {big}), CAST(:at AS {big}), :actor, :action, :data, :prev, :hash){more})
v (task, n, at, actor, action, data, prev, hash);

-- name: insert_admin_event
INSERT INTO events (xid, workspace_id, n, at, actor, action, data, prev, hash)
VALUES ({admin_slot}, :workspace, :n, :at, :actor, :action, :data, :prev, :hash);

-- name: workspace_head_for_update
SELECT name, event_count, event_head, settings FROM workspaces WHERE id = :workspace {lock};

-- name: workspace_head
SELECT name, event_count, event_head FROM workspaces WHERE id = :workspace;

-- name: set_workspace_head
UPDATE workspaces SET event_count = :n, event_head = :hash WHERE id = :workspace;

-- name: insert_output
INSERT INTO output (task_id, epoch, at, sort, text) VALUES (:task, :epoch, :at, :sort, :text);

-- name: trim_output
-- Keeps the newest :kept lines.
DELETE FROM output WHERE task_id = :task AND id <= (
    SELECT o.id FROM output o WHERE o.task_id = :task ORDER BY o.id DESC LIMIT 1 OFFSET :kept);

-- name: output
SELECT id, epoch, at, sort, text FROM output WHERE task_id = :task AND id > :after ORDER BY id LIMIT :limit;

-- name: last_output
SELECT id, epoch, at, sort, text FROM output WHERE task_id = :task ORDER BY id DESC LIMIT :limit;

-- name: drop_patch
DELETE FROM patches WHERE task_id = :task;

-- name: insert_patch
INSERT INTO patches (task_id, epoch, at, base, body) VALUES (:task, :epoch, :at, :base, :body);

-- name: patch
SELECT epoch, at, base, body FROM patches WHERE task_id = :task;

-- name: register_worker
INSERT INTO workers (workspace_id, actor, name, host, agents, project_id, epic_id, role, runs, parallel, started_at, seen_at)
VALUES (:workspace, :actor, :name, :host, :agents,
        (SELECT p.id FROM projects p WHERE p.workspace_id = :workspace AND p.key = :project), :epic, :role, :runs, :parallel, :now, :now)
ON CONFLICT (workspace_id, actor, name) DO UPDATE
SET host = excluded.host, agents = excluded.agents, project_id = excluded.project_id, epic_id = excluded.epic_id,
    role = excluded.role, runs = excluded.runs, parallel = excluded.parallel, started_at = excluded.started_at,
    seen_at = excluded.seen_at;

-- name: trim_workers
-- Deletes killed workers: those not seen since :before, and all but the newest :kept of an actor.
DELETE FROM workers WHERE workspace_id = :workspace AND (seen_at < :before OR actor = :actor AND seen_at < (
    SELECT w.seen_at FROM workers w WHERE w.workspace_id = :workspace AND w.actor = :actor
    ORDER BY w.seen_at DESC LIMIT 1 OFFSET :kept));

-- name: renew_worker
UPDATE workers SET seen_at = :now WHERE workspace_id = :workspace AND actor = :actor AND name = :name;

-- name: remove_worker
DELETE FROM workers WHERE workspace_id = :workspace AND actor = :actor AND name = :name;

-- name: remove_workers
DELETE FROM workers WHERE workspace_id = :workspace;

-- name: workers
-- Last seen first.
SELECT w.actor, w.name, w.host, w.agents, w.project_id, p.key, w.epic_id, e.key, w.role, w.runs, w.parallel, w.started_at, w.seen_at
FROM workers w LEFT JOIN projects p ON p.id = w.project_id LEFT JOIN tasks e ON e.id = w.epic_id
WHERE w.workspace_id = :workspace AND w.seen_at > :since ORDER BY w.seen_at DESC, w.actor, w.name;

-- name: held
-- All claims. A claimed task has a lease, so the index on due_at finds it.
SELECT t.claimed_by, t.holder, t.key FROM tasks t JOIN projects p ON p.id = +t.project_id
WHERE t.due_at IS NOT NULL AND t.holder IS NOT NULL AND p.workspace_id = :workspace ORDER BY t.id;

-- name: worked_on
-- A task whose claim is not held by a registered worker.
SELECT 1 FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND (CAST(:project AS TEXT) IS NULL OR p.key = :project)
AND t.state = 'working' AND t.state <> 'done' AND NOT EXISTS (
    SELECT 1 FROM workers w WHERE w.workspace_id = :workspace AND w.name = t.holder AND w.actor = t.claimed_by AND w.seen_at > :since)
LIMIT 1;

-- name: count_ready
SELECT count(*) FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND (CAST(:project AS TEXT) IS NULL OR p.key = :project) AND {workable};

-- name: reply
SELECT request, task_id, question_id, epoch, at FROM replies WHERE workspace_id = :workspace AND actor = :actor AND key = :key;

-- name: renew_claim
UPDATE tasks SET claim_hash = :hash, version = version + 1 WHERE id = :id AND epoch = :epoch AND holder IS NOT NULL;

-- name: steps_at
SELECT {step} FROM steps s WHERE s.task_id = :task AND s.journal = :journal AND s.place IN ({places});

-- name: steps
SELECT {step} FROM steps s WHERE s.task_id = :task AND s.journal = :journal ORDER BY s.place {bytewise};

-- name: steps_written
SELECT {step} FROM steps s WHERE s.task_id = :task AND s.journal = :journal AND (s.started_at = :at OR s.ended_at = :at)
ORDER BY s.place {bytewise};

-- name: copy_steps
INSERT INTO steps (task_id, journal, place, name, agent, digest, call, status, session_id, seat, result, started_at, ended_at)
SELECT s.task_id, :journal, s.place, s.name, s.agent, s.digest, s.call, s.status, s.session_id, s.seat, s.result, s.started_at,
       s.ended_at
FROM steps s WHERE s.task_id = :task AND s.journal = :old AND s.place {bytewise} < :to;

-- name: supersede_steps
INSERT INTO steps (task_id, journal, place, name, agent, digest, call, status, session_id, seat, result, started_at, ended_at)
SELECT s.task_id, :journal, '~' || s.place, s.name, s.agent, s.digest, s.call, s.status, s.session_id, s.seat, s.result,
       s.started_at, s.ended_at
FROM steps s WHERE s.task_id = :task AND s.journal = :old AND s.place {bytewise} >= :to AND s.place {bytewise} < '~';

-- name: run_questions
SELECT {question} FROM questions q WHERE q.task_id = :task ORDER BY q.id;

-- name: run_steps
SELECT {step} FROM steps s JOIN tasks t ON t.id = s.task_id AND t.journal = s.journal
WHERE s.task_id = :task ORDER BY s.place {bytewise};

-- name: run_source
SELECT t.key, {program} FROM tasks t
LEFT JOIN programs m ON m.id = (SELECT max(x.id) FROM programs x WHERE x.task_id = t.id) WHERE t.id = :task;

-- name: program
SELECT {program} FROM programs m WHERE m.task_id = :task ORDER BY m.id DESC LIMIT 1;

-- name: insert_reply
INSERT INTO replies (workspace_id, key, actor, request, task_id, question_id, epoch, at)
VALUES (:workspace, :key, :actor, :request, :task, :question, :epoch, :at);

-- name: insert_workspace
INSERT INTO workspaces (name, created_at) VALUES (:name, :at) ON CONFLICT DO NOTHING;

-- name: insert_project
INSERT INTO projects (workspace_id, key, name, created_at) VALUES (:workspace, :key, :name, :at);

-- name: set_project
UPDATE projects SET settings = :settings WHERE workspace_id = :workspace AND key = :key;

-- name: set_workspace
UPDATE workspaces SET settings = :settings WHERE id = :workspace;

-- name: user
SELECT role, removed_at FROM users WHERE workspace_id = :workspace AND name = :name ORDER BY id DESC LIMIT 1;

-- name: users
SELECT name, role, created_at FROM users WHERE workspace_id = :workspace AND removed_at IS NULL ORDER BY name;

-- name: insert_user
INSERT INTO users (workspace_id, name, role, created_at) VALUES (:workspace, :name, :role, :at);

-- name: set_user
UPDATE users SET role = :role WHERE workspace_id = :workspace AND name = :name AND removed_at IS NULL;

-- name: remove_user
UPDATE users SET removed_at = :at WHERE workspace_id = :workspace AND name = :name AND removed_at IS NULL;

-- name: revoke_tokens_of
UPDATE tokens SET revoked_at = :at WHERE workspace_id = :workspace AND (actor = :actor OR created_by = :actor)
AND revoked_at IS NULL;

-- name: insert_token
INSERT INTO tokens (workspace_id, name, actor, role, hash, scopes, created_by, created_at, expires_at)
VALUES (:workspace, :name, :actor, :role, :hash, :scopes, :by, :at, :expires);

-- name: revoke_token
UPDATE tokens SET revoked_at = :at WHERE workspace_id = :workspace AND name = :name AND revoked_at IS NULL;

-- name: token
-- With the current role of its owner, if one was set.
SELECT t.name, t.actor, t.role, t.expires_at, t.revoked_at, t.scopes, u.role, u.removed_at, {now}
FROM tokens t LEFT JOIN users u ON u.id = (SELECT max(x.id) FROM users x
                                           WHERE x.workspace_id = t.workspace_id AND 'human:' || x.name = t.actor)
WHERE t.workspace_id = :workspace AND t.hash = :hash;

-- name: tokens
SELECT name, actor, role, created_at, expires_at, revoked_at, scopes, created_by FROM tokens WHERE workspace_id = :workspace
ORDER BY id;

-- name: workspace_of_token
SELECT w.name FROM tokens t JOIN workspaces w ON w.id = t.workspace_id WHERE t.hash = :hash;

-- name: workspace_of_login
SELECT w.name FROM logins l JOIN workspaces w ON w.id = l.workspace_id WHERE l.hash = :hash;

-- name: workspace_of_link
SELECT w.name FROM links l JOIN workspaces w ON w.id = l.workspace_id WHERE l.hash = :hash;

-- name: workspaces
SELECT name FROM workspaces ORDER BY id;

-- name: own_token
SELECT actor, created_by FROM tokens WHERE workspace_id = :workspace AND name = :name AND revoked_at IS NULL;

-- name: password
SELECT password, role FROM users WHERE workspace_id = :workspace AND name = :name AND removed_at IS NULL;

-- name: set_password
UPDATE users SET password = :password WHERE workspace_id = :workspace AND name = :name AND removed_at IS NULL;

-- name: insert_login
INSERT INTO logins (workspace_id, actor, role, hash, about, created_at, expires_at)
VALUES (:workspace, :actor, :role, :hash, :about, :at, :expires);

-- name: login
SELECT l.id, l.actor, l.role, l.expires_at, l.ended_at, u.role, u.removed_at, {now}
FROM logins l LEFT JOIN users u ON u.id = (SELECT max(x.id) FROM users x
                                           WHERE x.workspace_id = l.workspace_id AND 'human:' || x.name = l.actor)
WHERE l.workspace_id = :workspace AND l.hash = :hash;

-- name: logins
SELECT id, actor, role, about, created_at, expires_at FROM logins
WHERE workspace_id = :workspace AND ended_at IS NULL AND expires_at > :now ORDER BY id;

-- name: login_of
SELECT actor FROM logins WHERE workspace_id = :workspace AND id = :id AND ended_at IS NULL;

-- name: end_login
UPDATE logins SET ended_at = :at WHERE workspace_id = :workspace AND id = :id AND ended_at IS NULL;

-- name: end_logins_of
UPDATE logins SET ended_at = :at WHERE workspace_id = :workspace AND actor = :actor AND ended_at IS NULL;

-- name: end_logins
UPDATE logins SET ended_at = :at WHERE workspace_id = :workspace AND ended_at IS NULL;

-- name: drop_logins
DELETE FROM logins WHERE workspace_id = :workspace AND expires_at <= :before;

-- name: insert_link
INSERT INTO links (workspace_id, actor, role, hash, created_by, created_at, expires_at)
VALUES (:workspace, :actor, :role, :hash, :by, :at, :expires);

-- name: link
SELECT actor, role, expires_at, used_at FROM links WHERE workspace_id = :workspace AND hash = :hash;

-- name: use_link
UPDATE links SET used_at = :at WHERE workspace_id = :workspace AND hash = :hash AND used_at IS NULL AND expires_at > :at;

-- name: drop_links
DELETE FROM links WHERE workspace_id = :workspace AND expires_at <= :before;

-- name: drop_links_of
DELETE FROM links WHERE workspace_id = :workspace AND actor = :actor;

-- name: prefs
SELECT body FROM prefs WHERE workspace_id = :workspace AND actor = :actor;

-- name: set_prefs
INSERT INTO prefs (workspace_id, actor, body) VALUES (:workspace, :actor, :body)
ON CONFLICT (workspace_id, actor) DO UPDATE SET body = excluded.body;

-- name: take_rate
-- A use adds :cost to used_until. Changes nothing if that would be more than :room ahead of now.
INSERT INTO rates (workspace_id, name, used_until) VALUES (:workspace, :name, CAST(:now AS {big}) + CAST(:cost AS {big}))
ON CONFLICT (workspace_id, name) DO UPDATE
SET used_until = CASE WHEN rates.used_until > CAST(:now AS {big}) THEN rates.used_until ELSE CAST(:now AS {big}) END + CAST(:cost AS {big})
WHERE rates.used_until <= CAST(:now AS {big}) + CAST(:room AS {big}) - CAST(:cost AS {big});

-- name: spend_rates
-- The same for several rates, each with its own cost. Returns the names of those that had room.
INSERT INTO rates (workspace_id, name, used_until) VALUES {spent}
ON CONFLICT (workspace_id, name) DO UPDATE
SET used_until = CASE WHEN rates.used_until > CAST(:now AS {big}) THEN rates.used_until ELSE CAST(:now AS {big}) END
  + excluded.used_until - CAST(:now AS {big})
WHERE rates.used_until <= CAST(:now AS {big}) + CAST(:room AS {big}) - (excluded.used_until - CAST(:now AS {big}))
RETURNING name;

-- name: rate
SELECT used_until FROM rates WHERE workspace_id = :workspace AND name = :name;

-- name: drop_rate
DELETE FROM rates WHERE workspace_id = :workspace AND name = :name;

-- name: drop_rates
DELETE FROM rates WHERE workspace_id = :workspace AND used_until <= :before;

-- name: project_keys
SELECT key FROM projects WHERE workspace_id = :workspace ORDER BY id;

-- name: projects
SELECT p.key, p.name, p.settings, w.settings, p.created_at,
       (SELECT count(*) FROM tasks t WHERE t.project_id = p.id AND t.state <> 'done' AND t.state NOT IN ({ended}))
FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE p.workspace_id = :workspace ORDER BY p.id;

-- name: events_after
-- The events of the finished transactions :low to :high (exclusive), in the order of writing.
SELECT e.seq, e.task_id, t.key, e.n, e.at, e.actor, e.action, e.data, e.prev, e.hash
FROM events e LEFT JOIN tasks t ON t.id = e.task_id
WHERE e.workspace_id = :workspace AND e.xid >= {cast_low} AND e.xid < {cast_high} AND e.seq > :seq
ORDER BY e.seq LIMIT :limit;

-- name: now
SELECT {now};

-- name: horizon
SELECT {horizon};

-- name: chain
SELECT e.seq, e.task_id, t.key, e.n, e.at, e.actor, e.action, e.data, e.prev, e.hash
FROM events e LEFT JOIN tasks t ON t.id = e.task_id
WHERE e.workspace_id = :workspace AND e.seq > :seq ORDER BY e.seq LIMIT :limit;

-- name: heads
SELECT t.id, t.key, t.event_count, t.event_head FROM tasks t JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace AND t.id > :after ORDER BY t.id LIMIT :limit;

-- name: latest_moment
SELECT max(x.at) FROM (
    SELECT coalesce(max(e.at), 0) AS at FROM events e WHERE e.workspace_id = :workspace
    UNION ALL
    SELECT coalesce(max(t.updated_at), 0) FROM tasks t JOIN projects p ON p.id = t.project_id WHERE p.workspace_id = :workspace
    UNION ALL
    SELECT coalesce(w.fenced_at, 0) FROM workspaces w WHERE w.id = :workspace
) AS x;

-- name: renumber_questions
UPDATE workspaces SET next_question = 1 + coalesce((SELECT max(q.id) FROM questions q WHERE q.workspace_id = workspaces.id), 0);

-- name: fence_workspace
UPDATE workspaces SET fenced_at = :at WHERE id = :workspace;

-- name: standing
-- Claimed tasks, and permissions of open tasks that were granted since the last restore.
SELECT t.id, 0 FROM tasks t JOIN projects p ON p.id = +t.project_id
WHERE p.workspace_id = :workspace AND t.due_at IS NOT NULL AND t.holder IS NOT NULL
UNION ALL
SELECT t.id, q.id FROM questions q JOIN tasks t ON t.id = q.task_id JOIN workspaces w ON w.id = q.workspace_id
WHERE q.workspace_id = :workspace AND q.kind = 'permission' AND q.status = 'answered' AND q.response LIKE '%"approved"%'
  AND t.state NOT IN ({ended}) AND q.responded_at >= coalesce(w.fenced_at, 0)
ORDER BY 1, 2;

-- name: project_named
SELECT 1 FROM projects WHERE workspace_id = :workspace_id AND key = :key AND id = :id;

-- name: chain_goes_through
SELECT 1 FROM tasks t JOIN events e ON e.task_id = t.id
WHERE t.id = :id AND t.key = :key AND e.n = :event_count AND e.hash = :event_head;

-- name: imported
SELECT id, key, state, extra FROM tasks WHERE project_id = :project AND external_id = :external;
