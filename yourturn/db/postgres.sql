-- PostgreSQL only: the CHECKs of tasks and questions as one trigger per table (postgres.py says why). A condition that changes here
-- also changes in schema.sql; a test compares them.
;;
DO $$ DECLARE constraint_row record; BEGIN
    FOR constraint_row IN SELECT conrelid::regclass AS tab, conname FROM pg_constraint
        WHERE contype = 'c' AND conrelid IN ('tasks'::regclass, 'questions'::regclass)
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', constraint_row.tab, constraint_row.conname); END LOOP;
END $$
;;
DROP FUNCTION IF EXISTS yourturn_fit_tasks() CASCADE
;;
DROP FUNCTION IF EXISTS yourturn_fit_questions() CASCADE
;;
CREATE FUNCTION yourturn_fit_tasks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF ((NEW.title <> '')
    AND (NEW.state IN ('created', 'ready', 'blocked', 'working', 'human', 'review', 'done', 'failed', 'cancelled', 'deferred'))
    AND (NEW.return_state IN ('created', 'ready', 'blocked', 'working', 'review'))
    AND (NEW.outcome IN ('back', 'done'))
    AND (NEW.priority BETWEEN 0 AND 4)
    AND (NEW.requires IN ('approval', 'review', 'content'))
    AND (NEW.retry_count >= 0)
    AND (NEW.max_retries >= 1)
    AND (NEW.failure IN ('error', 'stuck', 'timeout'))
    AND (NEW.epoch >= 0)
    AND ((NEW.holder IS NULL) = (NEW.lease_expires_at IS NULL))
    AND ((NEW.holder IS NULL) = (NEW.claim_hash IS NULL))
    AND ((NEW.holder IS NULL) = (NEW.claimed_by IS NULL))
    AND ((NEW.holder IS NULL) = (NEW.lease IS NULL))
    AND (NEW.outcome IS NULL OR NEW.state = 'human')
    AND (NEW.parent_id IS NULL OR NEW.parent_id <> NEW.id)
    AND (NEW.lease_expires_at IS NULL OR (NEW.due_at IS NOT NULL AND NEW.due_at <= NEW.lease_expires_at))
    AND (NEW.wake_at IS NULL OR (NEW.due_at IS NOT NULL AND NEW.due_at <= NEW.wake_at))
    AND (NEW.accept_at IS NULL OR (NEW.due_at IS NOT NULL AND NEW.due_at <= NEW.accept_at))
    AND (NEW.state <> 'working' OR NEW.holder IS NOT NULL)
    AND (NEW.holder IS NULL OR NEW.state IN ('working', 'human'))
    AND (NEW.holder IS NULL OR NEW.epoch > 0)
    AND ((NEW.state IN ('done', 'cancelled', 'failed')) = (NEW.ended_at IS NOT NULL))
    AND ((NEW.state IN ('human', 'deferred')) = (NEW.return_state IS NOT NULL))
    AND (NEW.failure IS NULL OR NEW.state = 'failed')
    AND (NEW.wake_at IS NULL OR NEW.state = 'deferred')
    AND (NEW.accept_at IS NULL OR NEW.state = 'review')) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of tasks would break the schema';
END IF;
RETURN NEW; END $$
;;
CREATE TRIGGER tasks_fit BEFORE INSERT OR UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION yourturn_fit_tasks()
;;
CREATE FUNCTION yourturn_fit_questions() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF ((NEW.kind IN ('work', 'approval', 'input', 'review', 'content', 'escalation', 'checkpoint', 'permission', 'recovery'))
    AND (NEW.blocking IN (0, 1))
    AND (NEW.text <> '')
    AND (NEW.urgency IN ('low', 'normal', 'high'))
    AND (NEW.response_type IN ('text', 'choice', 'boolean', 'approval', 'number'))
    AND (NEW.multi IN (0, 1))
    AND (NEW.allow_other IN (0, 1))
    AND (NEW.on_timeout IN ('default', 'fail', 'stuck', 'defer', 'remind', 'escalate', 'keep', 'accept'))
    AND (NEW.status IN ('pending', 'answered', 'timeout', 'cancelled'))
    AND ((NEW.status = 'pending') = (NEW.responded_at IS NULL))
    AND ((NEW.status = 'pending') = (NEW.responded_by IS NULL))
    AND (NEW.status <> 'answered' OR (NEW.response IS NOT NULL AND substr(NEW.responded_by, 1, 6) = 'human:'))
    AND (NEW.kind IN ('input', 'escalation', 'recovery') OR NEW.response_type IN ('approval', 'boolean'))
    AND (NEW.blocking = 1 OR NEW.default_value IS NOT NULL)
    AND (NEW.blocking = 1 OR NEW.timeout_at IS NULL)
    AND (NEW.default_value IS NULL OR NEW.kind IN ('input', 'recovery'))
    AND (NEW.kind <> 'permission' OR NEW.digest IS NOT NULL)) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of questions would break the schema';
END IF;
RETURN NEW; END $$
;;
CREATE TRIGGER questions_fit BEFORE INSERT OR UPDATE ON questions FOR EACH ROW EXECUTE FUNCTION yourturn_fit_questions()
;;
