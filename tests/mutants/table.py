"""The mutants. Each row takes one guard away; the tests named beside it are the ones that should say so."""

from __future__ import annotations

from . import Mutant

_RULES, _DECIDE, _EFFECTS, _GUARDS, _HOLDING = (
    "yourturn/core/rules.py", "yourturn/core/decide.py", "yourturn/core/effects.py", "yourturn/core/guards.py", "yourturn/core/claims.py",
)
_LANDING, _QUESTIONS, _CANON = (
    "yourturn/core/outcomes.py", "yourturn/core/questions.py", "yourturn/core/canonical_json.py",
)
_JOURNAL, _LOOKS, _WRITTEN = "yourturn/core/journal.py", "yourturn/client/queries.py", "tests/core/test_journal.py"
_DESK, _MOVE, _OFFICE, _LOOKOUT = (
    "yourturn/desk/desk.py", "yourturn/desk/move.py", "yourturn/desk/admin.py", "yourturn/desk/lookups.py",
)
_BASE, _DOCKET = "yourturn/db/unit_of_work.py", "yourturn/db/case_loader.py"
_SQLITE, _POSTGRES = "yourturn/db/sqlite.py", "yourturn/db/postgres.py"
_CONNECTION, _HANGING, _FLAT = "yourturn/db/connection.py", "yourturn/db/details.py", "tests/db/test_constant_cost.py"
_SCHEMA, _QUERIES = "yourturn/db/schema.sql", "yourturn/db/queries.sql"

_MATRIX, _LATE, _CLOCK = "tests/core/test_rules.py", "tests/core/test_stale_claims.py", "tests/core/test_due_transitions.py"
_ASKED, _VERDICTS, _GATES = "tests/core/test_questions.py", "tests/core/test_outcomes.py", "tests/core/test_gates.py"
_AWAITING, _ARGUMENTS = "tests/cli/test_awaiting.py", "tests/surfaces/test_arguments.py"
_FAMILY, _ANSWERS = "tests/core/test_dependencies.py", "tests/core/test_answers.py"
_FINISHED, _PARSER = "tests/core/test_finished_work.py", "yourturn/core/answers.py"
_ACTIONS = "yourturn/core/actions.py"
_GIVEN, _GATE = "tests/core/test_permission_questions.py", "tests/worker/claude/test_permission_gate.py"
_RACES, _EVENTS, _ROWS = "tests/db/test_races.py", "tests/db/test_event_log.py", "tests/db/test_schema.py"
_KEYS, _TROUBLE, _FENCES = "tests/desk/test_idempotency.py", "tests/db/test_database_errors.py", "tests/db/test_fencing.py"
_LOST, _LOOKED = "tests/client/test_remote_lost_replies.py", "tests/client/test_remote_reads.py"
_RECENT, _PEOPLE = "tests/db/test_case_cache.py", "tests/desk/test_users.py"
_AUTH, _SECURITY, _POOL = "yourturn/server/auth.py", "tests/server/test_security.py", "tests/server/test_desk_pool.py"
_PAGES, _ANSWERED, _LIVE, _TEXT = (
    "tests/web/test_pages.py", "tests/web/test_answer_form.py", "tests/web/test_live_updates.py", "tests/web/test_xss.py",
)
_SENDING, _CLOSED, _DESKS, _NOTICE = (
    "tests/web/test_sending_answers.py", "tests/web/test_closed_questions.py", "tests/web/test_browser_storage.py", "tests/web/test_notifications.py",
)
_TWO, _SHOWN, _LINE = (
    "tests/web/test_concurrent_people.py", "tests/web/test_page_version.py", "tests/web/test_event_stream.py",
)
_PRESENCE, _WORKERS = "yourturn/desk/worker_registry.py", "tests/desk/test_worker_registry.py"
_BACKUP, _ARCHIVE = "tests/data/test_restore.py", "tests/data/test_archive.py"
_NAMING, _INTAKE, _BEADS = "yourturn/core/references.py", "yourturn/data/task_import.py", "yourturn/data/trackers/beads.py"
_NAMES, _IMPORTS = "tests/core/test_references.py", "tests/data/test_task_import.py"
_HANDOFFS, _TICKETS = "tests/stories/test_handoffs.py", "tests/stories/test_tickets.py"
_SIGNALS, _MESSAGE = "yourturn/worker/signals/outcomes.py", "yourturn/worker/signals/message_parser.py"
_SAID, _HANDED = "tests/worker/signals/test_outcome.py", "tests/core/test_handoff.py"
_RICHER = "tests/stories/test_richer_handoff.py"
_QUOTE, _BRIEF, _BRIEFS = "yourturn/worker/prompt/quoting.py", "yourturn/worker/prompt/brief.py", "tests/worker/prompt/test_brief.py"
_RUNS, _LEASH, _CLAUDE = (
    "yourturn/worker/agents/process.py", "yourturn/worker/agents/kill_with_parent.py", "yourturn/worker/agents/claude.py",
)
_PROCESS, _ENDINGS, _DOUBLES = (
    "tests/worker/agents/test_process.py", "tests/worker/agents/test_adapters.py", "tests/worker/agents/test_doubles.py",
)
_APPROVAL, _CALLED, _ASKING = "yourturn/approval/decorator.py", "yourturn/approval/call_binding.py", "tests/approval/test_decorator.py"
_CALLS, _YES, _EXACTLY = (
    "tests/approval/test_call_binding.py", "tests/approval/test_answers.py", "tests/approval/test_exact_calls.py",
)
_SITTING, _TURNS, _HOLDER = (
    "yourturn/worker/task_session.py", "yourturn/worker/agent_turns.py", "yourturn/worker/claim_holder.py",
)
_RUNNING, _STEPPING, _BRANCHES = (
    "yourturn/worker/run_session.py", "yourturn/worker/step_session.py", "yourturn/worker/git/branches.py",
)
_INTERRUPT = "yourturn/worker/script_interrupt.py"
_FIRE, _AT_WORK, _FLOWS = "tests/worker/test_faults.py", "tests/stories/test_claude.py", "tests/worker/test_run_session.py"
_TOLD, _MARKS, _CODEX = "tests/worker/test_answer_delivery.py", "yourturn/worker/read_marks.py", "yourturn/worker/agents/codex.py"
_MODELS = "tests/faults/test_models.py::test_the_desk_equals_the_reference_model[sqlite]"
_GIT, _REPOSITORY, _DELIVERY = (
    "yourturn/worker/git/worktrees.py", "yourturn/worker/git/repository.py", "yourturn/worker/git/commits.py",
)
_INPLACE, _CLEANING = "yourturn/worker/git/in_place.py", "yourturn/worker/git/cleanup.py"
_PLACES, _SORTS, _DELIVERED = (
    "tests/worker/git/test_worktrees.py", "tests/worker/git/test_repositories.py", "tests/worker/git/test_commits.py",
)
_REPLAY, _DURABLE, _ENGINE = (
    "yourturn/flow/journal.py", "yourturn/flow/api.py", "yourturn/flow/engine.py",
)
_CHANGED, _WAYS, _CLAIMED, _BESIDE, _ALIGNED, _TRUTH, _FAILURES = (
    "tests/flow/test_changed_scripts.py", "tests/flow/test_script_exceptions.py", "tests/flow/test_engine.py", "tests/flow/test_parallel.py", "tests/flow/test_alignment.py", "tests/flow/test_answer_truth.py", "tests/flow/test_failures.py",
)
_ALIGN = "yourturn/flow/alignment.py"
_DOUBT = "tests/flow/test_changed_calls.py"
_PATCHES, _CLEANED = "tests/worker/git/test_patches.py", "tests/worker/git/test_cleanup.py"


def on(file: str, test: str, where: str = "sqlite") -> tuple[str, ...]:
    """One test, on one database."""
    return (f"{file}::{test}[{where}]" if where else f"{file}::{test}",)


MUTANTS: tuple[Mutant, ...] = (
    # --- the table: states and roles
    Mutant("a cell is added", _RULES, '("vet",         (CREATED,), ', '("vet",         (CREATED, DEFERRED), ', on(_MATRIX, "test_every_transition_of_the_table_is_reached_and_no_other")),
    Mutant("a cell is removed", _RULES, '("stop",        (WORKING, HUMAN, READY, DEFERRED), ', '("stop",        (WORKING, READY, DEFERRED), ', on(_MATRIX, "test_every_transition_of_the_table_is_reached_and_no_other")),
    Mutant("the state is not asked", _DECIDE, "    if rule is None:\n        raise refusals.illegal(d, action.verb)\n", "    if rule is None:\n        rule = next(row for (_, v), row in TRANSITIONS.items() if v == verb)\n", on(_MATRIX, "test_illegal_moves_say_what_is_valid_and_change_nothing")),
    Mutant("an agent is a person", _RULES, '"agent": frozenset({"any", "holder"})', '"agent": frozenset({"any", "holder", "human"})', on(_MATRIX, "test_agent_is_refused_a_persons_verb_in_every_state")),
    Mutant("a viewer is anybody", _RULES, '"viewer": frozenset({"own"})', '"viewer": frozenset({"any"})', on(_MATRIX, "test_viewer_is_refused_every_verb")),
    Mutant("nobody is asked who they are", _DECIDE, "    _may(d, rule, action.verb)\n    _apply(d, rule, action.verb)\n", "    _apply(d, rule, action.verb)\n", on(_MATRIX, "test_which_roles_may_use_which_verbs")),
    Mutant("a viewer has questions of their own", "yourturn/core/permissions.py", "    return mine is not None and (reviewer is None", "    return mine is None or (reviewer is None", on("tests/surfaces/test_mine.py", "test_an_agent_answers_nothing", "sqlite")),
    Mutant("only an admin restarts", _RULES, 'who=TRANSITIONS[HUMAN, "answer"].who, guards', "guards", on(_VERDICTS, "test_the_right_to_answer_includes_a_restart_with_a_late_answer", "sqlite")),
    Mutant("whoever answers anything restarts a gate", _RULES, 'guards=("may_answer", "may_take_back", *rule.guards))', 'guards=("may_take_back", *rule.guards))', on(_VERDICTS, "test_a_gate_that_is_for_approvers_is_restarted_by_them", "sqlite")),
    Mutant("a question without a cause wakes the job", _RULES, "    return was in (HUMAN, REVIEW, *ENDED) and now", "    return now", on("tests/api/test_jobs.py", "test_a_job_is_resumed_only_if_it_waited_and_goes_on", "sqlite")),
    Mutant("everybody reopens", _RULES, '("reopen",      (DONE,),                                (READY, BLOCKED),                 "admin", ', '("reopen",      (DONE,),                                (READY, BLOCKED),                 "human", ', on(_TICKETS, "test_reopen_is_for_admins")),
    Mutant("a gate is cancelled away", _RULES, '"human",               ("may_lift",),                            "cancel")', '"human",               (),                                 "cancel")', on("tests/core/test_gate_bypass.py", "test_a_gate_for_approvers_is_not_cancelled_away", "sqlite")),
    Mutant("a gate is cancelled away by another answer", "yourturn/core/effects.py", "        may_lift(d)\n", "", on("tests/core/test_gate_bypass.py", "test_a_gate_for_approvers_is_not_cancelled_away", "sqlite")),
    Mutant("a late answer undoes a sign-off", _GUARDS, "    if d.state == DONE:\n        _approver(d, d.key)\n", "", on("tests/core/test_gate_bypass.py", "test_a_late_answer_does_not_undo_what_an_approver_signed_off", "sqlite")),
    Mutant("agents say old ids", _GUARDS, 'if not who.is_person and d.args.get("external_id"):', "if False:", on("tests/core/test_gate_bypass.py", "test_only_people_say_which_id_a_task_has_elsewhere", "sqlite")),
    Mutant("an approval that says no", "yourturn/core/questions.py", "    if verdict_of(text) is (not yes):", "    if False:", on("tests/core/test_gate_bypass.py", "test_a_verdict_and_a_word_that_say_the_opposite_are_refused", "")),
    Mutant("agents answer", _RULES, '"human", ("may_answer",),        "answer")', '"any", ("may_answer",),        "answer")', on(_MATRIX, "test_agent_is_refused_a_persons_verb_in_every_state")),
    Mutant("members sign for approvers", _GUARDS, 'return d.settings["approvals"] != "approvers" or', "return True or", on(_GATES, "test_a_reserved_gate_has_no_back_door", "sqlite-approve")),
    Mutant("an agent lifts a gate", _GUARDS, "(d.holds_claim and q.kind in WITHDRAWABLE)", "d.holds_claim", on(_GIVEN, "test_a_verdict_cannot_be_withdrawn", "sqlite-approval")),
    Mutant("anybody takes a question back", _GUARDS, "(d.holds_claim and q.kind in WITHDRAWABLE)", "(q.kind in WITHDRAWABLE)", on(_VERDICTS, "test_an_agent_withdraws_only_what_it_asked_and_what_holds_nothing_up")),
    Mutant("a member replaces a reserved gate", _GUARDS, "return not KINDS[q.kind].gate or _is_approver(d)", "return True", on(_GATES, "test_a_reserved_gate_is_replaced_by_approvers_only", "sqlite")),
    Mutant("what the system asks is replaced", _GUARDS, 'if q.asked_by == "system" or q.reason == FINISHED:\n        return False', "if q.reason == FINISHED:\n        return False", on(_AWAITING, "test_a_question_of_the_system_is_not_replaced", "sqlite")),
    Mutant("a question without a turn is lost", _GUARDS, 'if name in d.args and "awaiting" not in d.args]', "if False]", on(_ARGUMENTS, "test_a_question_without_a_kind_is_refused", "sqlite")),
    # --- permissions
    Mutant("a permission serves another action", _GUARDS, 'if d.args["digest"] != allowed(q):', "if False:", on(_GIVEN, "test_anything_else_than_what_was_shown_is_refused", "sqlite-input")),
    Mutant("a permission serves another call", _GUARDS, 'if q.used_by not in (None, d.args["by"]):', "if False:", on(_GIVEN, "test_first_use_binds_the_permission_and_may_be_repeated")),
    Mutant("a permission outlives a restore", _GUARDS, "if not allows(q, d.case.project.fenced_at):", "if not allows(q, None):", on(_GIVEN, "test_a_restore_voids_used_permissions_too")),
    Mutant("a rejected permission serves", _GUARDS, "    if not allows(q, None):\n", "    if q.kind != 'permission':\n", on(_GIVEN, "test_what_was_not_given_cannot_be_used")),
    Mutant("anybody uses a permission", _GUARDS, "q.asked_by != who.name and not d.holds_claim:", "False:", on(_GIVEN, "test_only_the_asker_or_the_holder_uses_it")),
    Mutant("an edit is what was shown", _QUESTIONS, 'return value, {"digest": digest(value)}', "return value, {}", on(_GIVEN, "test_edited_input_is_a_new_digest_by_the_person")),
    Mutant("another tool is an edit", _QUESTIONS, "any(value[name] != shown[name] for name in shown if name not in EDITABLE)", "False", on(_GIVEN, "test_only_the_input_is_edited_and_a_wrong_edit_leaves_it_open", "sqlite-tool")),
    Mutant("a used permission is used again", _BASE, "AND status = 'answered' AND used_by IS NULL", "", on(_FENCES, "test_a_permission_used_by_another_call_is_not_used")),
    Mutant("the hook allows without using", "yourturn/worker/claude/permission_gate.py", "client.use(q, call.by, edited or call.action, claim=claim)", "pass", on(_GATE, "test_a_gated_call_parks_and_the_answer_lets_it_run")),
    Mutant("silence allows a call", "yourturn/worker/claude/permission_gate.py", 'return bool(q["status"] == "answered" and q["response"]["verdict"] == "approved")', 'return bool(q["status"] != "pending")', on(_GATE, "test_timeout_is_reported_and_allows_nothing")),
    Mutant("an agent raises its limits", _GUARDS, "if UPDATES[field] not in ROLES[who.role]:", "if False:", on(_MATRIX, "test_an_agent_raises_no_limit_and_removes_no_gate")),
    Mutant("anybody runs the office", _DESK, "            check(action.who, action.verb)\n", "", on(_HANDOFFS, "test_an_agent_cannot_answer_itself")),
    Mutant("a revoked token opens", _LOOKOUT, "if revoked is not None:", "if False:", on(_HANDOFFS, "test_a_token_is_an_identity")),
    Mutant("a removed person answers", _LOOKOUT, 'return role if removed is None else "viewer"', "return role", on(_TICKETS, "test_removed_person_can_only_read", "")),
    # --- people over a network
    Mutant("any password opens", "yourturn/desk/passwords.py", "return compare_digest(derived, b64decode(expected)) and stored is not None", "return stored is not None", on(_PEOPLE, "test_a_password_proves_itself_and_nothing_else", "")),
    Mutant("an unknown name costs nothing", "yourturn/client/admin.py", "if not passwords.proves(password, proof) or row is None:", "if row is None or not passwords.proves(password, proof):", on(_PEOPLE, "test_login_of_an_unknown_name_takes_as_long")),
    Mutant("an old password lets in", _OFFICE, 'if row is None or row[0] != a["proof"]:', "if row is None:", on(_PEOPLE, "test_a_password_that_changed_meanwhile_is_refused")),
    Mutant("everybody owns everything", "yourturn/core/permissions.py", 'return who == SYSTEM or who.role == "admin" or (who.is_person and who.name == actor)', "return True", on(_PEOPLE, "test_sessions_of_others_are_not_shown")),
    Mutant("a token of more than its maker", _OFFICE, 'if not permissions.at_most(a["role"], by.role):', "if False:", on(_PEOPLE, "test_people_make_tokens_for_themselves")),
    Mutant("a token is good for everything", "yourturn/core/permissions.py", "    if in_scope(who, name):\n        return\n", "    return\n", on(_PEOPLE, "test_a_token_is_good_for_its_scopes_only")),
    Mutant("any token takes a run", _RULES, '("may_run", "is_work",', '("is_work",', on(_PEOPLE, "test_only_a_workers_token_takes_a_run_and_speaks_as_its_script")),
    Mutant("a token of wider scopes than its maker's", _OFFICE, "if not permissions.narrower(scopes, by.scopes) or", "if", on(_PEOPLE, "test_a_worker_makes_tokens_for_its_agents_and_no_others")),
    Mutant("what a removed person made stays good", _QUERIES, "(actor = :actor OR created_by = :actor)", "actor = :actor", on(_PEOPLE, "test_a_worker_makes_tokens_for_its_agents_and_no_others")),
    Mutant("a token proves the claims of all its sessions", "yourturn/server/desk_pool.py", 'f"{session} {client.who.name}".encode()', "client.who.name.encode()", on("tests/mcp/test_http_transport.py", "test_claim_needs_both_token_and_session", "")),
    Mutant("a browser opens the tools of agents", "yourturn/mcp/http_transport.py", "        if not token:\n            raise NotKnown(", "        if not token and not headers.get('cookie'):\n            raise NotKnown(", on("tests/mcp/test_http_transport.py", "test_only_tokens_are_accepted_and_persons_act_as_agents", "")),
    Mutant("a link works twice", _QUERIES, "AND hash = :hash AND used_at IS NULL AND expires_at > :at;", "AND hash = :hash AND expires_at > :at;", on(_PEOPLE, "test_a_link_works_once_and_not_for_long")),
    Mutant("a link works for ever", _QUERIES, "AND used_at IS NULL AND expires_at > :at;", "AND used_at IS NULL;", on(_PEOPLE, "test_a_link_works_once_and_not_for_long")),
    Mutant("a session never ends", _LOOKOUT, "if row is None or row[4] is not None or row[3] <= self.now(row[-1]):", "if row is None:", on(_PEOPLE, "test_a_session_ends", "sqlite-logout")),
    Mutant("a session in clear", _OFFICE, '"hash": secret_hash(a["secret"]), "about"', '"hash": a["secret"], "about"', on(_PEOPLE, "test_no_secret_is_stored_or_printed")),
    Mutant("an allowance has no end", _QUERIES, "WHERE rates.used_until <= CAST(:now AS {big}) + CAST(:room AS {big}) - CAST(:cost AS {big});", ";", on(_PEOPLE, "test_an_allowance_is_shared_and_comes_back")),
    Mutant("an old version will do", _DECIDE, "if action.version is not None and task is not None and task.version != action.version:", "if False:", on(_PEOPLE, "test_move_at_a_version_is_refused_after_a_change")),
    Mutant("an expired token is accepted", "yourturn/desk/lookups.py", "if expires is not None and expires <= self.now(database):", "if False:", on(_POOL, "test_expired_token_is_refused", "")),
    Mutant("a handler runs in the event loop", "yourturn/server/desk_pool.py", "return await asyncio.get_running_loop().run_in_executor(self._executor, partial(_call, function, args, named))", "return _call(function, args, named)", on(_POOL, "test_handlers_run_in_a_few_threads", "")),
    Mutant("a streamed body of any size", "yourturn/server/limits.py", "            if size > limit:\n", "            if False:\n", on("tests/server/test_connections.py", "test_a_chunked_body_above_the_limit", "")),
    Mutant("any name is ours", _AUTH, "if name in address.hosts or (address.any_ip and _is_ip(name)):", "if True:", on(_SECURITY, "test_server_address", "")),
    Mutant("any page may change", _AUTH, "if origin.lower() not in allowed:", "if False:", on(_SECURITY, "test_a_cross_origin_request_is_refused", "null")),
    Mutant("a cookie alone changes", _AUTH, "if session and not hmac.compare_digest", "if False and not hmac.compare_digest", on(_SECURITY, "test_cookie_without_csrf_token_changes_nothing", "sqlite-x")),
    Mutant("a route asks nobody", "yourturn/api/endpoint.py", "    permissions.check(principal.client.who if principal else None, operation)\n", "    principal = principal or auth.Principal(state.pool.client())\n", on("tests/api/test_permissions.py", "test_permissions_of_every_operation", "none-gone")),
    Mutant("what is told twice", "yourturn/server/broadcast.py", "watcher.put(b\"\".join(event_filter.encode(event) for event in held_back if event.seq not in watcher.seen))", "watcher.put(b\"\".join(event_filter.encode(event) for event in held_back))", on("tests/api/test_events.py", "test_an_event_from_the_log_is_not_sent_again_live", "")),
    Mutant("a round begins in another", "yourturn/server/broadcast.py", "if self._round is None and self._timer is None:", "if self._timer is None:", on("tests/api/test_events.py", "test_round_yields_and_ends_before_the_next", "")),
    Mutant("half an event is lost", "yourturn/server/broadcast.py", 'return f"{parts[0]}.{parts[1]}.{max(0, seq - 1)}", int(frame[:6]) + 1, seq', "return cursor, 0, 0", on("tests/api/test_events.py", "test_a_reconnected_watcher_misses_and_repeats_nothing")),
    Mutant("questions without end", "yourturn/desk/allowances.py", "        if name not in with_room or ", "        if ", on("tests/api/test_http.py", "test_question_rate_limit")),
    Mutant("only what comes over a wire is counted", "yourturn/desk/desk.py", "                    if tx.limited:\n", "                    if tx.limited and not self.who.direct:\n", on("tests/desk/test_rate_limits.py", "test_one_agent_with_a_new_task_each_time", "sqlite")),
    Mutant("new tasks without end", "yourturn/db/unit_of_work.py", " and (decision.opened or before is None):", " and decision.opened:", on("tests/desk/test_rate_limits.py", "test_an_agent_creates_only_so_many_tasks", "sqlite")),
    Mutant("several at once count as one each", _QUERIES, " - (excluded.used_until - CAST(:now AS {big}))\n", "\n", on("tests/desk/test_rate_limits.py", "test_one_task", "sqlite")),
    Mutant("a killed worker runs for ever", _PRESENCE, "    since = reader.now - GONE\n", "    since = -1\n", on(_WORKERS, "test_worker_is_listed_while_it_renews", "sqlite")),
    Mutant("a worker takes every role", _PRESENCE, "            and (task.role is None or self.role in (None, task.role))\n", "", on(_WORKERS, "test_a_task_is_unattended_exactly_if_no_worker_would_be_given_it", "sqlite-one role")),
    Mutant("a worker without agents takes tasks", _PRESENCE, "self.runs if task.workflow else self.agents", "self.runs", on(_WORKERS, "test_a_task_is_unattended_exactly_if_no_worker_would_be_given_it", "sqlite-runs only")),
    Mutant("a worker of an epic takes everything", _PRESENCE, "            and (self.epic_id is None or task.id in below[self.epic_id])\n", "", on(_WORKERS, "test_a_task_is_unattended_exactly_if_no_worker_would_be_given_it", "sqlite-one epic")),
    Mutant("a worker of a project takes everything", _PRESENCE, "            self.project_id in (None, task.project_id)\n            and", "            ", on(_WORKERS, "test_a_task_is_unattended_exactly_if_no_worker_would_be_given_it", "sqlite-one project")),
    Mutant("who is not registered takes nothing", _PRESENCE, "    if reader.worked_on(project, since):\n", "    if False:\n", on(_WORKERS, "test_an_unregistered_worker_may_take_the_next_task_too", "sqlite")),
    Mutant("anybody removes anybody's worker", _QUERIES, "DELETE FROM workers WHERE workspace_id = :workspace AND actor = :actor AND name = :name;", "DELETE FROM workers WHERE workspace_id = :workspace AND name = :name;", on(_WORKERS, "test_a_worker_cannot_renew_or_remove_the_row_of_another", "sqlite")),
    Mutant("anybody renews anybody's worker", _QUERIES, "UPDATE workers SET seen_at = :now WHERE workspace_id = :workspace AND actor = :actor AND name = :name;", "UPDATE workers SET seen_at = :now WHERE workspace_id = :workspace AND name = :name;", on(_WORKERS, "test_a_worker_cannot_renew_or_remove_the_row_of_another", "sqlite")),
    Mutant("an actor leaves workers without end", _QUERIES, "(seen_at < :before OR actor = :actor AND seen_at < (", "(seen_at < :before OR actor = '' AND seen_at < (", on(_WORKERS, "test_what_killed_workers_leave_is_bounded", "sqlite")),
    Mutant("a restore brings workers", _OFFICE, '    tx.run(tx.q["remove_workers"], here)', "    pass", on(_WORKERS, "test_a_file_with_everything_brings_no_worker", "sqlite-backup")),
    Mutant("a move reads all questions of its task", _SCHEMA, "CREATE INDEX questions_task  ON questions (task_id, responded_at, id);", "CREATE INDEX questions_task  ON questions (task_id, id);", on(_FLAT, "test_a_move_is_no_more_work_for_the_database_after_a_long_history", "sqlite")),
    Mutant("a body of any size", "yourturn/server/limits.py", "int(announced[:20]) > limit", "False", on("tests/api/test_http.py", "test_size_limit_of_bodies")),
    # --- claims
    Mutant("any token is the claim", _DECIDE, "alive and (d.script or secret_hash(token) == task.claim_hash) and worker", "alive and worker", on(_LATE, "test_the_same_name_with_a_new_epoch_is_no_proof_for_the_old_token")),
    Mutant("a lease never ends", _DECIDE, " and task.lease_expires_at > d.now\n", "\n", on(_LATE, "test_rules_refuse_an_expired_lease_before_the_due_move_is_applied", "sqlite-token")),
    Mutant("a lease is owed no end", _DECIDE, "if task.lease_expires_at is not None and task.lease_expires_at <= now:", "if False:", on(_CLOCK, "test_every_lost_try_counts_and_the_last_asks_a_person_exactly_once", "sqlite-expire")),
    Mutant("an epoch comes back", _HOLDING, "epoch = max(task.epoch, d.case.project.fenced_at or 0) + 1", "epoch = max(task.epoch, d.case.project.fenced_at or 0) or 1", on(_LATE, "test_the_same_name_with_a_new_epoch_is_no_proof_for_the_old_token")),
    Mutant("a debt is not paid first", _MOVE, "        if case.task is not None:\n            case = self._apply_due(case, now)\n", "", on(_LATE, "test_a_late_write_is_refused_and_leaves_no_trace", "sqlite-replaced")),
    Mutant("tries are not counted", _HOLDING, 'd.put(retry_count=d.get("retry_count") + 1)', "pass", on(_CLOCK, "test_every_lost_try_counts_and_the_last_asks_a_person_exactly_once", "sqlite-expire")),
    Mutant("one try too many", _HOLDING, 'if d.get("retry_count") >= d.get("max_retries"):', 'if d.get("retry_count") > d.get("max_retries"):', on(_CLOCK, "test_every_lost_try_counts_and_the_last_asks_a_person_exactly_once", "sqlite-expire")),
    Mutant("an answer resets no tries", _EFFECTS, '    d.put(retry_count=0, reason="")\n    offered = ', '    offered = ', on(_CLOCK, "test_only_people_reset_the_tries", "sqlite-answer")),
    # --- verdicts, finished work, choices that act, what counts as work
    Mutant("an unknown word is a yes", _QUESTIONS, "yes = verdict != REJECTED if value is None else verdict_of(value)", "yes = verdict != REJECTED if value is None else verdict_of(value) is not False", on(_FINISHED, "test_any_other_word_decides_nothing", "sqlite-banana")),
    Mutant("a word is searched for a yes", _PARSER, "return True if word in YES else", "return True if any(yes in word.split() for yes in YES) else", on(_FINISHED, "test_any_other_word_decides_nothing", "sqlite-yes please")),
    Mutant("a list is read as a word", _PARSER, "    if isinstance(value, (dict, list)):\n        return None\n    word = str(value)", "    word = str(value).strip(\"[]'\")", on(_FINISHED, "test_any_other_word_decides_nothing", "sqlite-word3")),
    Mutant("a contradiction is accepted", _QUESTIONS, "if value is not None and not agrees:", "if False:", on(_FINISHED, "test_a_verdict_and_a_value_that_contradict_each_other_decide_nothing", "sqlite-rejected-yes")),
    Mutant("a no with a no is a contradiction", _QUESTIONS, " or (verdict == REJECTED and not yes)", "", on(_FINISHED, "test_to_reject_a_question_of_yes_and_no_is_its_no", "sqlite-no")),
    Mutant("an asker lets silence accept", _ACTIONS, "f.choice(*ON_TIMEOUT)", 'f.choice(*ON_TIMEOUT, "accept")', on(_CLOCK, "test_an_asker_cannot_let_silence_accept")),
    Mutant("finished work is withdrawn", _GUARDS, '    if q.reason == FINISHED:\n        return f"{q.name} is about finished work: approve or reject it"\n', "", on(_FINISHED, "test_only_a_verdict_closes_the_question_about_finished_work", "sqlite-withdraw")),
    Mutant("finished work is replaced", _GUARDS, 'if q.asked_by == "system" or q.reason == FINISHED:', 'if q.asked_by == "system":', on(_FINISHED, "test_only_a_verdict_closes_the_question_about_finished_work", "sqlite-replace")),
    Mutant("finished work is handed back", _EFFECTS, "if q.status == PENDING and q.reason != FINISHED:", "if q.status == PENDING:", on(_FINISHED, "test_only_a_verdict_closes_the_question_about_finished_work", "sqlite-hand_back")),
    Mutant("silence accepts beside a question", _LANDING, "        _hold_acceptance(d)\n", "", on(_FINISHED, "test_silence_accepts_nothing_while_something_else_is_asked")),
    Mutant("the time does not run anew", _LANDING, "    if asked.timeout is not None:\n", "    if False:\n", on(_FINISHED, "test_silence_accepts_nothing_while_something_else_is_asked")),
    Mutant("work with open children is finished", _LANDING, '    if d.case.children:\n        close(d, asked, WITHDRAWN', '    if False:\n        close(d, asked, WITHDRAWN', on(_FINISHED, "test_a_child_added_during_another_question_makes_the_work_unfinished", "sqlite-2h")),
    Mutant("review keeps to an agent's limits", _QUESTIONS, ' and args.get("reason") != FINISHED:', ":", on(_FINISHED, "test_the_time_until_finished_work_is_accepted_is_the_projects_own", "sqlite-7d-168")),
    Mutant("a cause that is gone is still asked about", _DECIDE, "if about is not None and needed.get(about) != FAILED:", "if False:", on(_FAMILY, "test_question_about_failed_dependency_closes_when_its_cause_is_gone", "sqlite-reopen")),
    Mutant("more tries are still asked about", _DECIDE, "elif q.reason == RETRY_EXHAUSTED and task.retry_count < task.max_retries:", "elif False:", on(_FAMILY, "test_more_tries_close_the_question_about_the_last_one")),
    Mutant("a choice does not act", _EFFECTS, "        outcome = choices.EFFECTS[choice.effect](d, q) or outcome\n", "        pass\n", on(_FAMILY, "test_the_answer_to_a_failed_dependency_acts")),
    Mutant("a failure is not asked about", _DECIDE, "        if ref.state == FAILED:\n            why", "        if False:\n            why", on(_FAMILY, "test_nothing_stays_blocked_on_something_failed_without_a_question")),
    Mutant("a container is claimed", _GUARDS, 'return container(d.get("type")) or right_size(d)', 'return right_size(d)', on(_FINISHED, "test_what_is_not_work_is_never_offered", "sqlite-fields0")),
    Mutant("what is too large is vetted", _RULES, '("title", "right_size")', '("title",)', on(_FINISHED, "test_only_a_ready_task_marked_too_large_waits_to_be_split")),
    Mutant("the wrong size is not asked", _GUARDS, 'return "" if right_size(d) else "it is not too large"', 'return ""', on(_FINISHED, "test_only_a_ready_task_marked_too_large_waits_to_be_split")),
    Mutant("what became too large stays ready", _DECIDE, "if task.state == READY and too_large(task.complexity, case.has_children):", "if False:", on(_FINISHED, "test_only_a_ready_task_marked_too_large_waits_to_be_split")),
    Mutant("asking drops the claim", _EFFECTS, "if d.opened[0].blocking and not d.holds_claim:", "if d.opened[0].blocking:", on(_ASKED, "test_a_question_by_the_holder_keeps_the_claim")),
    Mutant("a stranger's question keeps it", _EFFECTS, "if d.opened[0].blocking and not d.holds_claim:", "if False:", on(_ASKED, "test_a_flag_or_a_question_by_anyone_else_drops_the_claim_at_once", "sqlite-ask")),
    Mutant("secrets are kept in clear", _CANON, "return str(_sha256(secret.encode()).hexdigest())", "return secret", on(_FENCES, "test_no_secret_is_stored")),
    # --- the same fences, found by the random machines alone
    Mutant("machines: any token is the claim", _DECIDE, "alive and (d.script or secret_hash(token) == task.claim_hash) and worker", "alive and worker", (_MODELS,)),
    Mutant("machines: a lease is owed no end", _DECIDE, "if task.lease_expires_at is not None and task.lease_expires_at <= now:", "if False:", (_MODELS,)),
    Mutant("machines: an epoch comes back", _HOLDING, "epoch = max(task.epoch, d.case.project.fenced_at or 0) + 1", "epoch = max(task.epoch, d.case.project.fenced_at or 0) or 1", (_MODELS,)),
    # --- questions
    Mutant("the last answer wins", _DECIDE, "if d.question is not None and d.question.status != PENDING:", "if False:", on(_VERDICTS, "test_second_answer_is_refused_with_author_and_time_of_the_first")),
    Mutant("a bare no tries it again", _QUESTIONS, "if q.asked_by == SYSTEM.name and len(str(value).split()) < 2:", "if False:", on(_FAMILY, "test_a_bare_yes_or_no_is_no_advice_for_the_next_try", "sqlite-no")),
    Mutant("any choice will do", _QUESTIONS, "if q.allow_other and isinstance(value, str) and value.strip():", "if isinstance(value, str) and value.strip():", on(_ANSWERS, "test_an_answer_that_does_not_fit_leaves_the_question_open")),
    Mutant("any number will do", _QUESTIONS, "if not math.isfinite(number):", "if False:", on(_ANSWERS, "test_an_answer_that_does_not_fit_leaves_the_question_open")),
    Mutant("a default approves", _QUESTIONS, 'if not allowed or q.response_type == "approval":', "if False:", on(_ASKED, "test_only_information_questions_have_a_default", "sqlite-approval")),
    Mutant("a permission for other words", _QUESTIONS, "digest=digest(action if action is not None else text)", "digest=digest(text)", on(_ASKED, "test_a_permission_is_bound_to_the_exact_action")),
    Mutant("silence is an answer", _EFFECTS, "close(d, q, TIMEOUT, response=response,", "close(d, q, ANSWERED, response=response,", on(_CLOCK, "test_what_silence_does", "sqlite-fail")),
    Mutant("time is up too early", _GUARDS, "q.timeout_at is not None and q.timeout_at <= d.now and", "q.timeout_at is not None and", on(_FENCES, "test_silence_cannot_be_called_early")),
    # --- families and time
    Mutant("dependents hear nothing", _LANDING, "d.touch += [ref.id for ref in d.case.dependents]", "pass", on(_FAMILY, "test_a_chain_moves_one_link_at_a_time")),
    Mutant("a parent ends before its child", _GUARDS, 'return f"open children: {keys(d.case.children)}" if d.case.children else ""', 'return ""', on(_FAMILY, "test_a_parent_cannot_be_done_while_a_child_is_open")),
    Mutant("a circle is allowed", _GUARDS, '    circle = d.args.get("circle")\n    if circle and any(', "    circle = []\n    if circle and any(", on(_FAMILY, "test_a_circle_is_refused_however_long_also_through_parents")),
    Mutant("time runs backwards", _DECIDE, "now = max(now, task.updated_at if task else 0, case.project.fenced_at or 0)", "now = max(now, case.project.fenced_at or 0)", on(_FENCES, "test_a_clock_that_is_set_back_decides_nothing_earlier")),
    Mutant("a read writes", _DESK, "                    raise _Rollback\n", "                    return result\n", on(_CLOCK, "test_a_read_shows_the_true_state_and_writes_nothing")),
    # --- rows: comparing, locking, isolating
    Mutant("the version is not compared", _BASE, 'WHERE id = :task AND version = :was"', 'WHERE id = :task AND :was = :was"', on(_FENCES, "test_a_decision_on_an_old_version_is_not_saved")),
    Mutant("a remembered loner stays one", _BASE, 'self.run.later(self.q["raise_version"], {"id": other if task in (0, own) else task})', "None", on(_RECENT, "test_a_new_dependant_is_seen")),
    Mutant("an ended neighbour is none", "yourturn/db/case_cache.py", "if not case.alone:", "if case.needs or case.children or case.dependents or case.parent or case.is_parent:", on(_RECENT, "test_an_ended_neighbour_is_one")),
    Mutant("remembered settings are good", _BASE, "(SELECT p.settings = :own FROM projects p WHERE", "(SELECT :own = :own FROM projects p WHERE", on(_RECENT, "test_settings_that_changed")),
    Mutant("a move tells of what its neighbours have changed since", _HANGING, "self.moved.alone and self.moved.task.id", "self.left.task.id", on(_FLAT, "test_the_row_of_a_reply_is_the_row_that_show_has", "sqlite-alone")),
    Mutant("a move forgets the neighbours of its task", _HANGING, "if moved is not None and moved.alone:", "if left is not None:", on(_FLAT, "test_the_row_of_a_reply_is_the_row_that_show_has", "sqlite-with neighbours")),
    Mutant("old news refuse", _DESK, "if not recalled:  #", "if not recalled or not isinstance(error, Conflict):  #", on(_RECENT, "test_a_refusal_is_never_old_news")),
    Mutant("an unknown commit is said again", _DESK, "if isinstance(error, StoreTrouble) and not isinstance(error, Conflict):", "if False:", on(_RECENT, "test_unconfirmed_commit_is_not_repeated", "postgres")),
    Mutant("who changed nothing won (sqlite)", _SQLITE, "if self(text, args).rowcount != 1:\n            raise Conflict\n", "self(text, args)\n", on(_FENCES, "test_a_decision_on_an_old_version_is_not_saved")),
    Mutant("who changed nothing won (postgres)", _CONNECTION, "SELECT 1 / count(*) FROM changed", "SELECT count(*) FROM changed", on(_FENCES, "test_a_decision_on_an_old_version_is_not_saved", "postgres")),
    Mutant("a writer looks before its lock", _SQLITE, "BEGIN IMMEDIATE", "BEGIN", on(_FENCES, "test_a_writer_has_the_desk_to_itself_before_it_looks")),
    Mutant("a closed question is closed again", _BASE, "AND id = :id AND status = 'pending'", "AND id = :id", on(_FENCES, "test_a_question_that_is_not_pending_is_not_closed")),
    Mutant("a lost race is swallowed", _DESK, "                    time.sleep(0.002", "                    return None  # type: ignore\n                    time.sleep(0.002", on(_FENCES, "test_a_transaction_that_loses_a_race_runs_again")),
    Mutant("a remembered task is locked last", _BASE, "        if self.unlocked and (decision.opened", "        if False and (decision.opened", on(_RECENT, "test_two_moves_of_a_remembered_task_lock_it_in_one_order", "postgres")),
    Mutant("a refusal rolls back", _CONNECTION, "INTRANS and not self.wrote:", "INTRANS and False:", on("tests/db/test_connection.py", "test_a_refused_move_keeps_what_is_prepared", "postgres")),
    Mutant("what was refused is committed", _CONNECTION, "INTRANS and not self.wrote:", "INTRANS:", on("tests/db/test_connection.py", "test_what_is_written_and_refused_is_rolled_back", "postgres")),
    Mutant("a task is not locked", _POSTGRES, '"lock_task": "FOR NO KEY UPDATE OF t"', '"lock_task": ""', on(_RACES, "test_two_needs_that_end_together", "postgres")),
    Mutant("workers queue for one task", _POSTGRES, '"skip_locked": "FOR NO KEY UPDATE OF t SKIP LOCKED"', '"skip_locked": "FOR NO KEY UPDATE OF t"', on(_FENCES, "test_a_worker_does_not_wait_for_anothers_task", "postgres")),
    Mutant("locks in any order", _QUERIES, "ORDER BY t.id {lock_task};", "ORDER BY t.id DESC {lock_task};", on(_FENCES, "test_neighbours_are_locked_in_the_order_of_their_numbers", "postgres")),
    Mutant("two make one circle", _POSTGRES, 'run.later("SELECT pg_advisory_xact_lock(7258002, :id)", {"id": workspace})', "pass", on(_RACES, "test_a_circle_of_four_that_two_would_close", "postgres")),
    Mutant("another workspace's task", _QUERIES, "WHERE t.id = :id AND p.workspace_id = :workspace {lock_task};", "WHERE t.id = :id {lock_task};", on(_FENCES, "test_a_workspace_sees_nothing_of_another")),
    Mutant("another workspace's question", _QUERIES, "FROM questions q WHERE q.workspace_id = :workspace AND q.id = :id;", "FROM questions q WHERE q.id = :id;", on(_FENCES, "test_a_workspace_sees_nothing_of_another")),
    Mutant("another workspace's question, looked up with its task", _QUERIES, "t.id = q.task_id WHERE q.workspace_id = :workspace AND q.id = :id;", "t.id = q.task_id WHERE q.id = :id;", on(_FENCES, "test_a_workspace_sees_nothing_of_another")),
    # --- a desk that was restored
    Mutant("an epoch from before a restore", _HOLDING, "epoch = max(task.epoch, d.case.project.fenced_at or 0) + 1", "epoch = task.epoch + 1", on(_BACKUP, "test_a_second_restore_hands_out_other_epochs")),
    Mutant("an approval from before a restore", _QUESTIONS, "return said_yes and (fenced_at is None or q.responded_at >= fenced_at)", "return said_yes", on(_ARCHIVE, "test_an_approval_from_before_a_fence_does_not_count")),
    Mutant("a claim from before a restore", _HOLDING, "    drop_claim(d)\n    if d.state == WORKING:\n        to_ready(d)\n    d.data |=", "    d.data |=", on(_MATRIX, "test_every_transition_of_the_table_is_reached_and_no_other")),
    # --- keys
    Mutant("a key is forgotten", _MOVE, "        if earlier is not None:\n            return earlier\n", "", on(_KEYS, "test_create")),
    Mutant("a key stands for anything", "yourturn/desk/idempotency.py", "row is not None and row[0] != request:", "False:", on(_KEYS, "test_another_request_with_the_same_key_is_refused")),
    Mutant("a replayed claim revives", "yourturn/desk/idempotency.py", "if held.epoch != epoch or held.lease_expires_at is None or", "if held.lease_expires_at is None or", on(_KEYS, "test_a_replayed_claim_revives_nothing")),
    # --- runs and their journals
    Mutant("anything has a journal", _GUARDS, 'return "" if d.get("workflow") else "it has no script"', 'return ""', on(_WRITTEN, "test_what_has_no_script_has_no_journal")),
    Mutant("steps come along with anything", _JOURNAL, 'if not d.get("workflow"):', "if False:", on(_WRITTEN, "test_what_has_no_script_has_no_journal")),
    Mutant("anybody writes a journal", _JOURNAL, "if d.case.task is not None and not d.holds_claim:", "if False:", on(_WRITTEN, "test_only_the_holder_writes_whatever_verb_brings_the_steps")),
    Mutant("an agent brings code along", _JOURNAL, "    may_bring_code(d)\n", "", on(_WRITTEN, "test_code_comes_from_direct_database_users_or_admins")),
    Mutant("a member names any module", _GUARDS, 'not parts[-1].endswith((".py", ".lua")) or any(', "any(", on(_WRITTEN, "test_code_comes_from_direct_database_users_or_admins")),
    Mutant("a member names any file", _GUARDS, "any(not part or part.startswith(\".\") for part in parts)", "False", on(_WRITTEN, "test_code_comes_from_direct_database_users_or_admins")),
    Mutant("a busy step is settled", _JOURNAL, 'if old.status == RUNNING and d.get("holder"):', "if False:", on(_WRITTEN, "test_a_step_with_a_working_agent_is_not_settled_by_others")),
    Mutant("a member brings code", _GUARDS, 'if d.args.get("program"):\n        raise', 'if False:\n        raise', on(_WRITTEN, "test_code_comes_from_direct_database_users_or_admins")),
    Mutant("an agent begins a run", _GUARDS, 'if not who.is_person and d.args.get("workflow"):', "if False:", on(_WRITTEN, "test_an_agent_begins_no_run")),
    Mutant("a seat ends the run", _GUARDS, 'd.script and d.args.get("journal")', 'd.args.get("journal")', on(_WRITTEN, "test_the_seat_of_an_agent_is_not_the_script")),
    Mutant("a seat writes the journal", _JOURNAL, "if d.case.task is not None and (why_not := script_speaks(d)):", "if (why_not := None):", on(_WRITTEN, "test_the_seat_of_an_agent_is_not_the_script")),
    Mutant("a seat goes back", _RULES, '("a_run", "script_speaks"), ', '("a_run",), ', on(_WRITTEN, "test_the_seat_of_an_agent_is_not_the_script")),
    Mutant("a seat waits longer than the limits", _QUESTIONS, '("steps" in args and d.script)', '("steps" in args and d.holds_claim)', on(_WRITTEN, "test_the_seat_of_an_agent_is_not_the_script")),
    Mutant("a seat is the claim", _CANON, "secret_hash(seat_token(token) if run else token)", "secret_hash(token)", on(_WRITTEN, "test_the_seat_of_an_agent_is_not_the_script")),
    Mutant("an agent in a step ends the run", _GUARDS, 'd.script and d.args.get("journal") == d.get("journal")', "d.script", on(_WRITTEN, "test_an_agent_in_a_step_does_not_end_the_run")),
    Mutant("a run has a gate that nobody looks at", _GUARDS, 'if fields.get("requires"):', "if False:", on(_WRITTEN, "test_a_run_requires_nothing_at_its_end")),
    Mutant("a person cannot end a run", _GUARDS, 'if d.action.who.is_person or d.action.who.role == "system" or not', 'if d.action.who.role == "system" or not', on(_WRITTEN, "test_a_person_ends_a_run")),
    Mutant("an agent fails a waiting run", _RULES, '"holder system human", ("script_says",), ', '"holder system human", (), ', on(_WRITTEN, "test_an_agent_does_not_fail_a_run_while_it_waits")),
    Mutant("an agent splits a run", _RULES, '("children", "script_says"), ', '("children",), ', on(_WRITTEN, "test_an_agent_in_a_step_does_not_end_the_run")),
    Mutant("a result changes", _JOURNAL, "if old is not None and old.status == COMPLETED:", "if False:", on(_WRITTEN, "test_a_step_runs_waits_and_is_completed_once")),
    Mutant("another call in its place", _JOURNAL, "if old is not None and old.digest != call_hash:", "if False:", on(_WRITTEN, "test_another_call_in_its_place_is_refused")),
    Mutant("a result changes behind the law", _BASE, "WHERE steps.status <> 'completed' AND steps.digest", "WHERE steps.digest", on(_FENCES, "test_a_step_of_another_writer_is_not_changed", "sqlite-completed")),
    Mutant("another call behind the law", _BASE, " AND steps.digest = excluded.digest", "", on(_FENCES, "test_a_step_of_another_writer_is_not_changed", "postgres-another")),
    Mutant("known steps are new", _MOVE, "            case = self._with_steps(case, action)\n", "            pass\n", on(_WRITTEN, "test_a_step_runs_waits_and_is_completed_once")),
    Mutant("debts make steps new", _MOVE, '            case = self._apply_due(case, now)\n        if action.args.get("steps") or action.args.get("signal"):\n            case = self._with_steps(case, action)\n', '            if action.args.get("steps") or action.args.get("signal"):\n                case = self._with_steps(case, action)\n            case = self._apply_due(case, now)\n', on(_WRITTEN, "test_the_answer_comes_after_the_waiting_lease")),
    Mutant("a signal settles an old step", _JOURNAL, 'journal != str(d.get("journal")) or ', "", on(_WRITTEN, "test_a_signal_is_for_a_question_of_a_step")),
    Mutant("a question that asks again is an answer", _JOURNAL, 'close(d, q, WITHDRAWN, why="something else is asked now")', 'close(d, q, "answered", response={"type": "text", "value": None, "text": "", "verdict": "approved"})', on(_WRITTEN, "test_signal_that_asks_replaces_the_question", "sqlite-NEEDS_HUMAN-input")),
    Mutant("what is asked again waits for ever", _JOURNAL, "        timeout_at=d.now + q.timeout if q.timeout else None,\n", "        timeout_at=None,\n", on(_WRITTEN, "test_signal_that_asks_replaces_the_question", "sqlite-NEEDS_HUMAN-input")),
    Mutant("what holds nothing up is asked again", _JOURNAL, "        if not q.blocking:\n            raise Invalid(f\"{q.name} holds", "        if False:\n            raise Invalid(f\"{q.name} holds", on(_WRITTEN, "test_what_holds_nothing_up_is_not_asked_again")),
    Mutant("a signal settles twice", _JOURNAL, ' or journal != str(d.get("journal")) or old.status == COMPLETED:', ' or journal != str(d.get("journal")):', on(_WRITTEN, "test_a_signal_is_for_a_question_of_a_step")),
    Mutant("anybody speaks for a step", _QUESTIONS, 'if path is None or not d.holds_claim or not d.get("workflow"):', 'if path is None or not d.get("workflow"):', on(_WRITTEN, "test_only_the_holder_of_a_run_writes_its_steps")),
    Mutant("a task is asked by a step", _QUESTIONS, 'if path is None or not d.holds_claim or not d.get("workflow"):', "if path is None or not d.holds_claim:", on(_WRITTEN, "test_what_has_no_script_has_no_journal")),
    Mutant("anybody waits longer than the limits", _QUESTIONS, '("steps" in args and d.script)', '("steps" in args)', on(_WRITTEN, "test_only_a_script_waits_longer_than_the_limits")),
    Mutant("anybody holds by flagging", _EFFECTS, 'if not (d.args.get("hold") and d.holds_claim):', 'if not d.args.get("hold"):', on(_WRITTEN, "test_hold_keeps_the_claim_of_the_holder_alone")),
    Mutant("every flag holds", _EFFECTS, 'if not (d.args.get("hold") and d.holds_claim):', "if not d.holds_claim:", on(_WRITTEN, "test_hold_keeps_the_claim_of_the_holder_alone")),
    Mutant("a parked run forgets its steps", _HOLDING, "    write(d)\n    drop_claim(d)\n    if d.state == HUMAN:", "    drop_claim(d)\n    if d.state == HUMAN:", on(_WRITTEN, "test_a_run_that_waits_is_parked_with_its_steps")),
    Mutant("a gate is gone round by going back", _GUARDS, 'return may_lift(d) if d.state == HUMAN else ""\n\n\ndef short_enough', 'return ""\n\n\ndef short_enough', on(_WRITTEN, "test_rewinding_does_not_bypass_a_reserved_gate")),
    Mutant("everybody takes a failed run back", _RULES, '"admin",               ("a_run", "open_parent"), ', '"human",               ("a_run", "open_parent"), ', on(_WRITTEN, "test_only_an_admin_rewinds_a_failed_run")),
    Mutant("a run lives under an ended parent", _RULES, '("a_run", "open_parent"), ', '("a_run",), ', on(_WRITTEN, "test_a_failed_run_whose_parent_has_ended_stays_failed")),
    Mutant("a parent ends unseen", _MOVE, 'action.verb in ("reopen", "rewind") or', 'action.verb == "reopen" or', on(_RACES, "test_a_parent_that_ends_while_a_failed_run_goes_back", "postgres")),
    Mutant("people rewind what is worked on", _RULES, '("rewind",      (WORKING,),                             ("=",),                           "holder", ', '("rewind",      (WORKING,),                             ("=",),                           "holder human", ', on(_WRITTEN, "test_while_it_is_claimed_only_the_holder_rewinds")),
    Mutant("branches go back alone", _JOURNAL, 'at = place(to).partition(".")[0]', "at = place(to)", on(_WRITTEN, "test_branches_go_back_together", "sqlite-3.1.0")),
    Mutant("the step itself is kept", _QUERIES, "s.place {bytewise} < :to;", "s.place {bytewise} <= :to;", on(_WRITTEN, "test_spares_are_those_of_the_last_time_and_no_steps")),
    Mutant("what was laid aside is laid aside again", _QUERIES, " AND s.place {bytewise} < '~';", ";", on(_WRITTEN, "test_spares_are_those_of_the_last_time_and_no_steps")),
    Mutant("steps are always laid aside", _JOURNAL, 'd.rewound = (old, at, bool(d.args.get("spare")))', "d.rewound = (old, at, True)", on(_WRITTEN, "test_rewind_keeps_what_was_before_and_leaves_the_rest_behind")),
    Mutant("a question outlives its step", _JOURNAL, "            if q.status == PENDING:\n", "            if q.status == PENDING and q.blocking:\n", on(_WRITTEN, "test_rewinding_a_waiting_run_withdraws_its_questions")),
    Mutant("a run that goes back is held", _JOURNAL, "    elif d.state == HUMAN:\n        drop_claim(d)\n", "    elif d.state == HUMAN:\n", on(_WRITTEN, "test_rewinding_a_waiting_run_withdraws_its_questions")),
    Mutant("reopen goes on in the old journal", _EFFECTS, '        d.put(journal=d.get("journal") + 1)\n', "        pass\n", on(_WRITTEN, "test_reopen_begins_an_empty_journal")),
    Mutant("anybody gets a run", _DOCKET, '" AND t.workflow IS NULL" * (not runs)', '""', on(_WRITTEN, "test_the_next_task_is_a_run_only_for_workers_that_run_scripts")),
    Mutant("next shows a run", _LOOKS, "limit=1, runs=False, **filters", "limit=1, **filters", on(_WRITTEN, "test_the_next_task_is_a_run_only_for_workers_that_run_scripts")),
    Mutant("completed without a result", _SCHEMA, "    CHECK ((status = 'completed') = (result IS NOT NULL)),\n", "", on(_ROWS, "test_the_database_refuses_wrong_rows")),
    Mutant("machines: anybody writes a journal", _JOURNAL, "if d.case.task is not None and not d.holds_claim:", "if False:", (_MODELS,)),
    Mutant("machines: a signal settles an old step", _JOURNAL, 'journal != str(d.get("journal")) or ', "", (_MODELS,)),
    Mutant("machines: what goes back is held", _JOURNAL, "    elif d.state == HUMAN:\n        drop_claim(d)\n", "    elif d.state == HUMAN:\n", (_MODELS,)),
    Mutant("a due move makes a step new", _MOVE, '            case = self._apply_due(case, now)\n        if action.args.get("steps") or action.args.get("signal"):\n            case = self._with_steps(case, action)\n', '            if action.args.get("steps") or action.args.get("signal"):\n                case = self._with_steps(case, action)\n            case = self._apply_due(case, now)\n', on(_WRITTEN, "test_due_move_before_a_step_does_not_make_it_new")),
    # --- the schema, the last guard
    Mutant("two events with one number", _SCHEMA, "CREATE UNIQUE INDEX events_chain", "CREATE INDEX events_chain", on(_ROWS, "test_the_database_refuses_wrong_rows", "postgres")),
    Mutant("two last questions", _SCHEMA, "CREATE UNIQUE INDEX questions_exhausted", "CREATE INDEX questions_exhausted", on(_ROWS, "test_the_database_refuses_wrong_rows")),
    Mutant("two people of one name", _SCHEMA, "CREATE UNIQUE INDEX users_name", "CREATE INDEX users_name", on(_ROWS, "test_the_database_refuses_wrong_rows")),
    Mutant("two tokens of one name", _SCHEMA, "CREATE UNIQUE INDEX tokens_name", "CREATE INDEX tokens_name", on(_ROWS, "test_the_database_refuses_wrong_rows")),
    Mutant("an old id twice", _SCHEMA, "CREATE UNIQUE INDEX tasks_external", "CREATE INDEX tasks_external", on(_ROWS, "test_the_database_refuses_wrong_rows")),
    Mutant("working without a claim", _SCHEMA, "    CHECK (state <> 'working' OR holder IS NOT NULL),\n", "", on(_ROWS, "test_the_database_refuses_wrong_rows")),
    # --- names and imports
    Mutant("an ambiguous name is guessed", _NAMING, "if len(things) == 1:", "if things:", on(_NAMES, "test_old_number_never_names_another_task")),
    Mutant("a bare number means other projects' old ids", _NAMING, "readings = near or readings", "pass", on(_NAMES, "test_a_bare_number_keeps_its_meaning_beside_other_projects")),
    Mutant("a key is not exact", _DOCKET, "        if name.exact:\n", "        if False:\n", on(_NAMES, "test_what_the_desk_prints_is_exact")),
    Mutant("any tracker will do", _NAMING, " or r.tracker == name.tracker]", " or True]", on(_NAMES, "test_a_name_means_one_thing_or_is_refused_with_all_its_readings", "sqlite-1")),
    Mutant("an import makes two of a key", _INTAKE, "if keys and len(self.new) == len(self.items):", "if False:", on(_IMPORTS, "test_ids_that_are_keys_to_the_letter_go_into_another_project")),
    Mutant("an open circle is cut", _INTAKE, "if any(over) and needed in task.needs:", "if needed in one.needs:", on(_IMPORTS, "test_one_open_circle_beside_a_closed_one_is_refused")),
    Mutant("agents of beads are work", _BEADS, "if aside and state not in ENDED:", "if False:", on(_IMPORTS, "test_what_is_no_work_is_offered_to_no_agent")),
    # --- functions that ask first
    Mutant("one yes for many runs", _APPROVAL, "        self._use(q, digest(action))\n", "", on(_ASKING, "test_key_finds_the_earlier_question")),
    Mutant("a no is a yes", _APPROVAL, ' or response.get("verdict") != "approved":', ":", on(_YES, "test_rejected_call_raises_refused")),
    Mutant("silence is a no", _APPROVAL, 'if q["status"] == "timeout":', "if False:", on(_YES, "test_timeout_raises_nobody_answered")),
    Mutant("a changed object runs", _CALLED, "if self.function.show is not None and digest(", "if False and digest(", on(_CALLS, "test_object_changed_after_approval_is_refused")),
    Mutant("a tuple is shown as a list", _CALLED, "        if type(value) is list:\n", "        if isinstance(value, (list, tuple)):\n", on(_CALLS, "test_values_that_json_cannot_hold_are_refused", "sqlite-tuple")),
    Mutant("an edit forgets an argument", _CALLED, "if set(allowed) != set(self.shown):", "if False:", on(_YES, "test_edit_must_keep_all_arguments")),
    Mutant("1 is true", _QUESTIONS, "if digest(value) == q.digest:", "if value == shown:", on(_EXACTLY, "test_edited_argument_is_the_one_that_runs")),
    Mutant("a program asks as a person", _APPROVAL, "    if not desk.who.is_person:\n", "    if True:\n", on(_ASKING, "test_question_is_asked_as_an_agent")),
    # --- history and disk
    Mutant("events can be changed (sqlite)", _SQLITE, "CREATE TRIGGER events_fixed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END", "CREATE TRIGGER events_fixed BEFORE UPDATE ON events BEGIN SELECT 1; END", on(_EVENTS, "test_the_database_refuses_to_change_events")),
    Mutant("events can be deleted (postgres)", _POSTGRES, "BEFORE UPDATE OR DELETE ON events", "BEFORE UPDATE ON events", on(_EVENTS, "test_the_database_refuses_to_change_events", "postgres")),
    Mutant("a link without its actor", _CANON, "str(n), str(at), actor, action, data", "str(n), str(at), action, data", on(_EVENTS, "test_tampering_is_found")),
    Mutant("an effect before its cause", _POSTGRES, '"slot": "GREATEST(', '"slot": "COALESCE(', on(_EVENTS, "test_an_effect_is_never_seen_before_its_cause", "postgres")),
    Mutant("what is remembered has no cause", _BASE, "if task not in checked and n > 1", "if False", on(_EVENTS, "test_an_effect_is_never_seen_before_its_cause", "postgres")),
    Mutant("what was read again has no cause", _BASE, "remembered is None or (asked and not remembered[0].questions)", "remembered is None", on(_EVENTS, "test_an_answer_is_never_seen_before_its_question", "postgres")),
    Mutant("a late commit is skipped", _POSTGRES, "pg_snapshot_xmin(pg_current_snapshot())", "pg_snapshot_xmax(pg_current_snapshot())", on(_EVENTS, "test_an_event_that_commits_late_is_not_skipped", "postgres")),
    Mutant("a commit before the disk (sqlite)", _SQLITE, "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL", on(_TROUBLE, "test_sqlite_syncs_fully", "")),
    Mutant("a commit before the disk (postgres)", _CONNECTION, "WHEN current_setting('synchronous_commit') IN ('off', 'local')", "WHEN false", on(_TROUBLE, "test_what_is_acknowledged_is_on_disk", "postgres")),
    Mutant("a token in clear", _OFFICE, '"hash": secret_hash(a["secret"]),\n            "scopes"', '"hash": a["secret"],\n            "scopes"', on(_FENCES, "test_no_secret_is_stored")),
    # --- what an agent said, and what it only showed
    Mutant("a tag in inline code is said", _MESSAGE, "return self._span[1] if self._span[0] <= here else 0", "return 0", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("a tag in a quotation is said", _MESSAGE, "[>|]         # a quotation", "[|]         # a quotation", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("a tag in a string is said", _MESSAGE, "return any(odd % 2 and self._occurs(mark, after, line_end)", "return any(False and self._occurs(mark, after, line_end)", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("fences do not nest", _MESSAGE, "            if opens:\n", "            if False:\n", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("fences need not add up", _SIGNALS, "if not message.unclosed:", "if True:", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("a tag is closed in a fence", _MESSAGE, "if sum(1 for _ in _EDGE.finditer(body)) % 2:", "if False:", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("a sentence about the signal is the signal", _SIGNALS, 'if word.what == "done" and piece.hypothetical:', "if False:", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("a record is a result", _SIGNALS, "return has_text and not RECORD_FIELDS & set(result)", "return has_text", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("the first word wins", _SIGNALS, "return outcomes[0] if len(outcomes) == 1 else _contradiction(outcomes[0], outcomes[1])", "return outcomes[0]", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("two ends are two questions", _SIGNALS, "if len(ends) > 1:", "if False:", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("a result asks without limit", _SIGNALS, "if len(first.questions) + len(others) > MANY:", "if False:", on(_SAID, "test_outcome_of_a_message", "")),
    Mutant("what the desk cannot ask is said to it", _TURNS, 'if outcome.what != "ask" or not outcome.fields:', "if True:", on(_RICHER, "test_handoff_the_desk_cannot_ask_reaches_a_person_verbatim")),
    Mutant("an unknown status costs a turn", _TURNS, 'if outcome.what == "nothing" and outcome.status and not self.context.in_step:', "if False:", on(_RICHER, "test_protocol_error_shows_the_message_without_a_traceback")),
    Mutant("a no among yeses is a yes", "yourturn/flow/agent_step.py", "    if no is not None:\n", "    if False:\n", on(_FLOWS, "test_one_rejection_among_several_questions_rejects_the_step", "0-REJECTED")),
    Mutant("a handoff asks without limit", "yourturn/core/actions.py", "if len(value) >= MANY:", "if False:", on(_HANDED, "test_one_that_does_not_fit_leaves_all_of_them_unasked", "")),
    Mutant("what people ask runs out", _QUESTIONS, 'and by.startswith("agent:") and', "and", on(_HANDED, "test_what_people_ask_and_tools_have_their_own_times")),
    Mutant("a project's time goes over the agent's", _QUESTIONS, "if timeout is None and not tool and by", "if not tool and by", on(_HANDED, "test_agents_own_values_win_over_the_settings")),
    Mutant("the file overrules the message", _SIGNALS, "if not _agree(signals[0], other):", "if False:", on(_SAID, "test_sources_that_differ_are_broken", "")),
    # --- git care
    Mutant("half a worktree is good enough", _GIT, "path.is_dir() and not mine.half_made", "path.is_dir()", on(_PLACES, "test_incomplete_worktree_is_made_again", "False")),
    Mutant("a folder in the way is removed", _GIT, 'path.rename(path.with_name(f"{path.name}.aside-{number}"))', '__import__("shutil").rmtree(path)', on(_PLACES, "test_obstacle_is_moved_not_removed", "")),
    Mutant("failed work is not kept", _GIT, "ref = _store(repo, key, status.head, tree)", 'ref = f"refs/yourturn/failed/{key}-1"', on(_PATCHES, "test_rolling_back_keeps_everything", "")),
    Mutant("any checkout is a worktree", _GIT, "if repo is None or repo.gitdir == repo.common or not", "if repo is None or False and not", on(_PLACES, "test_missing_worktree_is_not_replaced_by_the_checkout", ".git")),
    Mutant("a copied index is young", _REPOSITORY, "shutil.copy2(own, path)", "shutil.copy(own, path)", on(_PATCHES, "test_change_of_equal_size_in_the_same_second_is_detected", "")),
    Mutant("nested repositories are committed", _REPOSITORY, '(nested if line.endswith("/") else changed)', "changed", on(_SORTS, "test_nested_repositories_are_left_out_and_left_alone", "")),
    Mutant("conflicts are committed", _DELIVERY, "    if status.unmerged:\n", "    if False:\n", on(_PLACES, "test_conflicts_and_rebases_are_never_committed", "")),
    Mutant("a branch moves backwards", _DELIVERY, "if tip is not None and not is_ancestor(repo.top, tip, head):", "if False:", on(_PLACES, "test_diverged_branches_are_refused", "")),
    Mutant("a dirty checkout is merged into", _DELIVERY, 'if attempt(path, "diff", "--quiet", "HEAD").code != 0:', "if False:", on(_DELIVERED, "test_fast_forward_never_touches_a_dirty_checkout", "")),
    Mutant("a person's changes are taken", _INPLACE, "if status.dirty and not fresh:", "if False:", on(_SORTS, "test_in_place_refuses_a_persons_changes", "")),
    Mutant("a person's commits are rolled back", _INPLACE, 'if start is None or (mark.get("head"), mark.get("branch")) != (status.head, status.branch):', "if start is None:", on(_SORTS, "test_in_place_roll_back_keeps_a_persons_commits", "")),
    Mutant("open tasks are cleaned away", _CLEANING, 'if not ended(tree.task or ""):', "if False:", on(_CLEANED, "test_clean_removes_only_what_is_safe", "")),
    Mutant("commits on no branch are cleaned away", _CLEANING, "if status.branch is None and status.head and not _named(repo, status.head):", "if False:", on(_CLEANED, "test_clean_removes_only_what_is_safe", "")),
    # --- briefs
    Mutant("a text stands in no quote", _QUOTE, 'return [f"> {line}".rstrip() for', "return [line for", on(_BRIEFS, "test_any_text_stays_quoted", "")),
    Mutant("a tag on a label's line", _QUOTE, ' and not _SPECIAL.search(text)', "", on(_BRIEFS, "test_any_text_stays_quoted", "")),
    Mutant("an odd line end gets out", _QUOTE, "\\x9f\\u2028\\u2029", "\\x9f", on(_BRIEFS, "test_any_text_stays_quoted", "")),
    Mutant("a name is a tag", _QUOTE, ".split()).translate(_HARMLESS)", ".split())", on(_BRIEFS, "test_any_text_stays_quoted", "")),
    Mutant("a role speaks as the brief", _BRIEF, """("<promise", '"status"', "```", "~~~")""", "()", on(_BRIEFS, "test_role_with_signals_is_quoted", "~~~\\nopen")),
    Mutant("a role from outside", _BRIEF, "return chain[: n + 1]", "return chain", on(_BRIEFS, "test_role_texts", "")),
    Mutant("a name is a path", _BRIEF, "if not _AGENT.fullmatch(agent):", "if not agent:", on(_BRIEFS, "test_agent_name_is_not_a_path", "../secret")),
    Mutant("the oldest are kept", _BRIEF, "for item in reversed(items):", "for item in items:", on(_BRIEFS, "test_the_newest_are_kept", "")),
    Mutant("silence is told as an answer", _BRIEF, 'spoken = any(q["status"] == "answered" for q in latest)', "spoken = True", on(_BRIEFS, "test_every_question_with_its_answer")),
    # --- agents
    Mutant("an agent outlives its worker", _LEASH, "    watch(int(words[1]))\n", "", on(_PROCESS, "test_agent_and_its_children_die_with_the_worker", "9")),
    Mutant("an agent is not asked to end", _RUNS, "_signal(process, signal.SIGTERM)", "_signal(process, signal.SIGKILL)", on(_PROCESS, "test_agent_has_a_grace_period_to_end", "")),
    Mutant("half a message is read", _RUNS, 'ending = ending._replace(text="", error', "found = found._replace(error", on(_PROCESS, "test_stream_continues_after_a_line_that_is_too_long", "")),
    Mutant("a parked call is dropped", _CLAUDE, '"" if run.parked else run.answer_prompt', "run.answer_prompt", on(_DOUBLES, "test_parked_claude_session_continues_with_the_answer", "")),
    Mutant("a helper ends the task", _CLAUDE, 'Activity(str(block["text"])) if subagent else Text(str(block["text"]))', 'Text(str(block["text"]))', on(_ENDINGS, "test_text_of_a_subagent_is_not_the_message", "")),
    # --- the worker
    Mutant("an heir's words are its own", _SITTING, 'event["action"] not in ("claim", "expire")', "True", on(_FIRE, "test_worker_without_its_claim_stops_the_agent_and_writes_nothing")),
    Mutant("a heard answer is told again", _TURNS, 'bool(unread) and outcome.what == "nothing" and', "bool(unread) and", on(_FIRE, "test_answer_during_the_session_continues_under_the_same_claim")),
    Mutant("a quick answer is not told", _TURNS, '"" if self._was_answered(outcome) else self._result(ending, outcome)', "self._result(ending, outcome)", on("tests/stories/test_codex.py", "test_answer_before_the_end_of_the_turn_is_sent_at_once")),
    Mutant("what was sent counts as read", _MARKS, "self._results = mark_of(task), False, {}, {}\n", "self._results = mark_of(task), False, {}, {}\n        self._move()\n", on(_TOLD, "test_unread_answer_is_sent_by_the_next_worker", "claude")),
    Mutant("a mark does not move", _MARKS, "        self.mark = self._sent\n", "", on(_TOLD, "test_read_answer_is_not_repeated_after_a_crash", "trouble0")),
    Mutant("a parked session hears one answer", _TURNS, "if parked else \"\"\n", "if False else \"\"\n", on(_TOLD, "test_note_reaches_a_parked_session", "")),
    Mutant("news come with every call", "yourturn/worker/claude/permission_gate.py", "and any(asked and asked == call for _, asked, _ in news)", "and news", on(_GATE, "test_news_comes_with_the_parked_call_only", "sqlite-True")),
    Mutant("a nudge swallows an answer", _BRIEF, "    return \"\\n\\n\".join([*texts, nudge])", "    return \"\\n\\n\".join([nudge])", on(_TOLD, "test_nudge_keeps_the_answer", "claude")),
    Mutant("codex waits for an assumption", _CODEX, ' or data.get("blocking") is False', "", on(_TOLD, "test_question_that_does_not_block_keeps_the_signal", "codex-<promise>COMPLETE</promise>--done")),
    Mutant("a question beside another is dropped", _TURNS, "            self._ask_further_questions(ending)\n", "", on(_TOLD, "test_tag_and_tool_both_ask", "")),
    Mutant("dropped calls wait for ever", _TURNS, "            task = self._withdraw_superseded(ending)\n", "            pass\n", on(_AT_WORK, "test_superseded_call_is_withdrawn_with_a_reason")),
    Mutant("a park is forgotten", _SITTING, "self.turns.record_session(parked=result.parked)\n", "self.turns.record_session()\n", on(_AT_WORK, "test_question_parks_the_session_and_the_call_gets_the_answer")),
    Mutant("the patch stays at home", _HOLDER, 'patch=patch["body"] if patch else None', "patch=None", on(_FIRE, "test_another_machine_continues_from_the_stored_patch")),
    # --- runs
    Mutant("a step forgets its session", _STEPPING, 'self.turns.restore_session(call.session_id, call.seat, call.seat.get("host"))', "pass", on(_FLOWS, "test_session_of_a_step_continues_with_the_answer")),
    Mutant("a step's park is forgotten", _STEPPING, "                self.turns.record_session(parked=result.parked)\n                return Turn(\"waiting\")", "                return Turn(\"waiting\")", on(_FLOWS, "test_question_by_tool_parks_and_resumes_in_the_same_call")),
    Mutant("questions of other steps are its own", _STEPPING, "questions = self.call.questions()", 'questions = task["questions"]', on(_FLOWS, "test_agent_without_a_session_gets_the_whole_history")),
    Mutant("an agent's command ends the run", "yourturn/cli/claims.py", '        if parser.step(mine):\n            return _signalled(a, "DONE", summary=summary, **_account(a))\n', "", on(_FLOWS, "test_complete_and_fail_in_a_step_end_the_step_only")),
    Mutant("a missing agent is the script's", _RUNNING, 'raise self.needs(call, error_text(error), "access_required") from None', 'return Turn("broken", text=error_text(error))', on(_FLOWS, "test_missing_agent_asks_a_person", "")),
    Mutant("a failed run forgets its work", _RUNNING, "worktrees.apply_patch(place, self.key, body)", "pass", on(_FLOWS, "test_failed_run_stores_its_work_and_resume_restores_it", "")),
    Mutant("a hanging script keeps its worker", _INTERRUPT, "if now - since >= 2 * GRACE:", "if False:", on(_FLOWS, "test_hanging_script_is_abandoned", "asleep")),
    Mutant("a script's loop is not left", _INTERRUPT, "if now - since >= GRACE:", "if False:", on(_FLOWS, "test_hanging_script_is_abandoned", "loop")),
    Mutant("a branch begins beside the run's work", _BRANCHES, 'worktrees.finish(place, f"{key}: before step {branch_of(branch)}\\n")', "pass", on(_FLOWS, "test_parallel_branches_are_merged")),
    Mutant("a conflict is nobody's", _BRANCHES, "return _conflict(key, path, str(place.branch), parent, files, parts)", "continue", on(_FLOWS, "test_conflict_asks_a_person_and_is_retried")),
    Mutant("branches stay at home", _RUNNING, "if place.own or not name:", "if not name:", on(_FLOWS, "test_waiting_branches_move_to_another_machine", "")),
    Mutant("other machines do not wait", _DOCKET, "- 60000000)", "+ 60000000)", on(_FIRE, "test_another_machine_continues_from_the_stored_patch")),
    # --- workflows
    Mutant("a word about code answers a pause", _REPLAY, "] in ours and not about_run(q)]", "] in ours]", on(_CHANGED, "test_retry_with_the_old_script")),
    Mutant("a swallowed pause goes on", _REPLAY, "script_exit = self.journal.exit or self.left", "script_exit = self.journal.exit", on(_WAYS, "test_caught_suspension_is_noted_once")),
    Mutant("a swallowed divergence goes on", _REPLAY, "script_exit = self.journal.exit or self.left", "script_exit = self.left", on(_CHANGED, "test_caught_divergence_stops_at_the_next_call")),
    Mutant("a changed branch is recorded unseen", _REPLAY, 'entry.name not in (*QUIET, "parallel")', "entry.name not in QUIET", on(_BESIDE, "test_changed_branch")),
    Mutant("a parallel is taken over whole", _REPLAY, 'if entry.name == "parallel":\n', "if False:\n", on(_CHANGED, "test_parallel_is_reused_branch_by_branch")),
    Mutant("everything is kept", _REPLAY, "if len(self._kept) >= KEPT:", "if False:", on("tests/flow/test_api.py", "test_full_buffer_is_written")),
    Mutant("a spare serves twice", _REPLAY, '            self.superseded.taken.add(reused["index"])\n', "", on(_CHANGED, "test_superseded_step_is_reused_once", "sqlite-at once")),
    Mutant("chance is taken from anywhere", _ALIGN, "if last_number(s[\"index\"]) == cursor + 1), None)", "), None)", on(_CHANGED, "test_random_is_reused_only_in_place")),
    Mutant("an answer has two places", _ALIGN, "(name in ASKS and len(equal) > 1)", "False", on(_DOUBT, "test_two_equal_questions_after_the_same_call_are_asked_again")),
    Mutant("an answer goes to another place", _ALIGN, 'return (max(earlier)[1] if earlier else "") == behind', "return True", on(_ALIGNED, "test_answer_with_two_possible_places_is_asked_again")),
    Mutant("an answer goes to another parallel", _DURABLE, 'behind = "" if entry.in_place else None', 'behind = ""', on(_DOUBT, "test_a_branch_of_another_parallel_asks_again")),
    Mutant("a lambda is taken for another one", _ALIGN, "if name in ASKS or is_anonymous(name, call):\n            unsure", "if name in ASKS:\n            unsure", on(_DOUBT, "test_result_of_a_lambda_is_reused_only_in_place")),
    Mutant("a lambda is never in doubt", _ALIGN, ' or doubt.step["name"] not in ASKS]', "]", on(_DOUBT, "test_lambda_is_doubtful_even_if_all_calls_match")),
    Mutant("what fits is not doubted", _REPLAY, "uncertain = doubts(self.steps, new) if self.doubtful else []", "uncertain: list[Any] = []", on(_DOUBT, "test_deleted_and_added_checkpoint_is_doubtful")),
    Mutant("what the script asks now is not looked at", _REPLAY, "uncertain = doubts(self.steps, new) if", "uncertain = doubts(self.steps) if", on(_DOUBT, "test_checkpoint_inserted_before_an_open_one", "sqlite-")),
    Mutant("a branch acts before it is doubted", _REPLAY, "            self.check_doubts(entry)\n            if branch.alone:", "            if branch.alone:\n                self.check_doubts(entry)", on(_DOUBT, "test_doubt_is_reported_before_a_branch_has_effects")),
    Mutant("what is in doubt is taken over", _ALIGN, "wanted[:SHORT] in self.again or ", "", on(_DOUBT, "test_checkpoint_inserted_before_an_answered_one")),
    Mutant("every change is in doubt", _ENGINE, "self.changed and not (recorded and script.alike(", "self.changed and not (False and script.alike(", on(_DOUBT, "test_a_comment_is_no_change")),
    Mutant("one word keeps every change", _ENGINE, ' and (q["metadata"] or {}).get("program") == source.digest]', "]", on(_DOUBT, "test_keep_covers_only_one_change")),
    Mutant("an answer that was kept is not doubted", _ALIGN, 'if latest != here and own[here]["index"] in asked:', "if False:", on(_ALIGNED, "test_approval_is_not_moved_if_the_first_checkpoint_is_deleted")),
    Mutant("results come from anywhere", _ALIGN, ' and last_number(s["index"]) > cursor]', "]", on(_ALIGNED, "test_results_are_reused_in_order")),
    Mutant("a choice of no is true", "yourturn/flow/results.py", "        if approved is None:\n            raise TypeError(", "        if False:\n            raise TypeError(", on(_TRUTH, "test_rejected_choice_raises_on_truth")),
    Mutant("a no is true", "yourturn/flow/results.py", 'return self.value is True and self.verdict != "rejected"', 'return self.verdict == "approved"', on(_TRUTH, "test_no_is_false")),
    Mutant("a loop never ends", _REPLAY, "if self.rounds > ROUNDS and", "if self.rounds > 10_000 * ROUNDS and", on(_FAILURES, "test_caught_exceptions_are_counted")),
    Mutant("a deed whose result is too large is repeated", _DURABLE, "        except Invalid as error:  # too large, for example: the function has run, so a failure is recorded\n", "        except KeyError as error:\n", on(_FAILURES, "test_a_result_that_cannot_be_recorded_is_a_recorded_failure", "sqlite-text")),
    Mutant("a failure is tried again without its step", _ENGINE, 'self.desk.rewind(self.key, failed, spare="." in failed, claim=self.claim)', "self.task", on(_FAILURES, "test_a_failed_run_asks_and_tries_again_from_the_call_that_failed")),
    Mutant("an answer is acted upon twice", _ENGINE, " or self._acted_upon(q):", ":", on(_FAILURES, "test_stopped_run_can_be_resumed")),
    Mutant("a spare serves again after a wait", _REPLAY, 'old = {"spare": [self.number, reused["index"]]}', "old: dict[str, Any] = {}", on(_CHANGED, "test_superseded_step_is_reused_once", "sqlite-after a wait")),
    Mutant("the worker does not stop", _REPLAY, "if self.host.stop.is_set():", "if False:", on(_CLAIMED, "test_stop_parks_without_costing_a_try")),
    Mutant("a stopped branch is done", _DURABLE, " + [e for e in errors if isinstance(e, Suspended)]", "", on(_CLAIMED, "test_a_host_that_stops_in_the_middle_of_a_turn", "sqlite-True")),
    Mutant("a step happens before its past is written", _DURABLE, "        branch.journal.flush()\n", "", on("tests/flow/test_api.py", "test_buffered_steps_are_written_before_an_effect")),
    Mutant("the end of a run answers its questions", _REPLAY, 'return event["data"]["to"] in ENDED', "return False", on(_BESIDE, "test_a_question_that_was_closed_by_the_end_is_asked_again", "sqlite-stopped")),
    Mutant("a question that was taken back is asked again", _REPLAY, 'return event["data"]["to"] in ENDED', "return True", on(_BESIDE, "test_a_question_that_was_closed_by_the_end_is_asked_again", "sqlite-stopped")),
    Mutant("a step waits for a person", _DURABLE, "no_waiting.set(Misplaced)", "no_waiting.set(None)", on("tests/flow/test_api.py", "test_waiting_for_a_person_is_refused_in_a_step")),
    Mutant("a waiting run gets stuck", _DURABLE, "    branch.check_exit()\n", "", on(_WAYS, "test_stuck_in_a_finally_does_not_end_a_run_that_waits")),
    Mutant("a run ends over an open question of its agent", _ENGINE, "if self.journal.acted and", "if False and", on("tests/flow/test_round_trip.py", "test_a_script_does_not_end_while_a_question_of_its_agent_is_open", "sqlite")),
    Mutant("a lost claim leaves notes", _ENGINE, ' and ended.what != "lost"', "", on(_CLAIMED, "test_a_lost_claim_in_the_middle", "sqlite-quiet")),
    # --- pages
    Mutant("what an agent wrote is markup", "yourturn/web/layout.py", "        out += escape(part) + sign\n", "        out += Markup(part) + sign\n", on(_TEXT, "test_xss_corpus_has_no_effect", "")),
    Mutant("a form needs no token", "yourturn/web/endpoint.py", "            auth.check_csrf(", "            str(", on(_PAGES, "test_forms_need_a_csrf_token", "")),
    Mutant("looking at a link uses it up", "yourturn/web/login.py", "_client_of_link(request, secret).whose_link(secret)", '_client_of_link(request, secret).use_link(secret)["actor"]', on(_PAGES, "test_login_link_works_once", "")),
    Mutant("a link is offered that is used up", "yourturn/client/admin.py", "if used is not None or ends <=", "if ends <=", on(_PAGES, "test_login_link_works_once", "")),
    Mutant("a form's token can be guessed from a length", _AUTH, "mask = os.urandom(_CSRF_BYTES)", "mask = bytes(_CSRF_BYTES)", on(_PAGES, "test_csrf_token_is_masked_differently_on_each_page", "")),
    Mutant("whoever makes a browser ask sees lengths", "yourturn/web/endpoint.py", "if same_site and ", "if ", on(_PAGES, "test_cross_site_requests_get_uncompressed_pages", "")),
    Mutant("who calls while a look passes is forgotten", "yourturn/mcp/http_transport.py", "        finally:  # a heartbeat during the call may have forgotten the session, because it had no claim yet\n            self._remember(headers)\n", "        finally:\n            pass\n", on("tests/mcp/test_http_transport.py", "test_heartbeat_during_the_first_claim_forgets_no_session", "")),
    Mutant("a session is believed for ever", "yourturn/mcp/http_transport.py", "forget = (now - (called_at or now)).total_seconds() > QUIET or not", "forget = not", on("tests/mcp/test_http_transport.py", "test_no_heartbeat_for_silent_sessions_or_revoked_tokens", "")),
    Mutant("the door leads outside", "yourturn/web/login.py", '("//", ', "(", on(_PAGES, "test_login_redirects_only_to_own_pages", "")),
    Mutant("a link leads outside", "yourturn/web/login.py", '_local_path(request.field("next")) if request.field("next") else "/"', 'request.field("next") or "/"', on("tests/web/test_first_visit.py", "test_login_page_explains_and_accepts_links", "")),
    Mutant("a command that is missing is tried again", "yourturn/worker/agent_turns.py", "if self.adapter.plain and ending.rc in _NOT_RUN:", "if False:", on("tests/stories/test_worker_trouble.py", "test_missing_command_is_not_retried", "sqlite-./missing.sh --fast-not found")),
    Mutant("what cannot work takes the next task", "yourturn/worker/worker.py", "if self._unable >= set(self.agents):", "if False:", on("tests/stories/test_worker_trouble.py", "test_missing_command_is_not_retried", "sqlite-./missing.sh --fast-not found")),
    Mutant("a permission is answered in a row", "yourturn/web/view_models.py", 'NOT_QUICK = frozenset({"permission", ', "NOT_QUICK = frozenset({", on(_ANSWERED, "test_quick_answer_is_chosen_then_sent", "js-390")),
    Mutant("a no without a reason", "yourturn/web/answer_form.py", "if no is not None and no.why_needed and", "if False and", on(_ANSWERED, "test_invalid_answer_leaves_the_question_open", "desk-plain")),
    Mutant("a late answer gets no page of its own", "yourturn/web/answer_form.py", "isinstance(error, (AlreadyClosed, KeyReused, IllegalMove)):", "isinstance(error, (KeyReused, IllegalMove)):", on(_PAGES, "test_finished_work_is_reviewed_once", "")),
    Mutant("a device sends what somebody else wrote", "yourturn/web/static/dom.js", '`yt:${meta?.dataset.me ?? ""}:`', '"yt:"', on(_LIVE, "test_draft_belongs_to_its_user", "desk")),
    Mutant("an answer for one desk goes to another", "yourturn/web/static/dom.js", "`${userPrefix}${desk}:`", "userPrefix", on(_DESKS, "test_answer_is_not_sent_to_another_desk", "desk")),
    Mutant("a restore does not make another desk", _DESK, '.{fenced or 0:x}"', '.0"', on(_DESKS, "test_answer_from_before_a_restore_is_not_sent", "desk")),
    Mutant("a page believes its memory before the server", "yourturn/web/static/article.js", "if (result && copy) {", "if (result) {", on(_DESKS, "test_contradicting_page_is_checked_once", "desk")),
    Mutant("a sheet hears what was meant for the page", "yourturn/web/static/notice.js", "  element.inert = !wanted;\n", "", on(_LIVE, "test_sheet_ignores_input_at_first", "desk")),
    Mutant("a sheet opens over a list", "yourturn/web/static/notice.js", "if ((empty || ", "if ((true || ", on(_LIVE, "test_new_question_beside_a_list_shows_a_pill", "desk")),
    Mutant("a person who writes at a task is not told", "yourturn/web/static/notice.js", "&& (await openSheet(id))) return;", ") { openSheet(id); return; }", on(_NOTICE, "test_a_question_about_the_open_task_is_announced_while_writing", "desk")),
    Mutant("a lost piece of a page is not asked for again", "yourturn/web/static/dom.js", "  if (first && first.status < 500) return first;\n", "  if (first) return first;\n", on(_NOTICE, "test_one_lost_request_does_not_hide_a_question", "gateway-desk")),
    Mutant("a tap hits what a toast has moved", "yourturn/web/static/dom.js", '  root.toggleAttribute("data-moved", true);\n', "", on(_NOTICE, "test_on_a_phone_a_tap_does_not_hit_what_a_toast_has_moved", "")),
    Mutant("a no that ends nothing is called a cancellation", "yourturn/core/previews.py", "if way.label == CANCELS and", "if False and", on(_PAGES, "test_non_blocking_question_says_that_nothing_waits", "")),
    Mutant("the pane hears while another question is loaded", "yourturn/web/static/list.js", "  container.inert = true;\n", "", on(_SENDING, "test_keys_do_not_answer_the_previous_question", "")),
    Mutant("what is hurried on its way waits all the same", "yourturn/web/static/outbox.js", "soon: inFlight.has(item.id)", "soon: false", on("tests/web/test_concurrent_people.py", "test_lost_reply_is_requested_again_after_the_event", "desk")),
    Mutant("a failed answer is not sent again", "yourturn/web/static/outbox.js", "next: now ? 0 : Date.now() + 1000 * Math.max(pause, minSeconds || 0)", "next: now ? 0 : Infinity", on(_SENDING, "test_answer_is_retried_after_a_bad_gateway", "desk")),
    Mutant("another try is another answer", "yourturn/web/static/outbox.js", '  body.set("csrf", csrf);\n  inFlight', '  body.set("csrf", csrf);\n  body.set("key", String(Math.random()));\n  inFlight', on(_SENDING, "test_an_answer_whose_reply_was_lost_counts_once", "desk")),
    Mutant("what was changed is sent as it was", "yourturn/web/static/answer.js", "queued(form.dataset.answer)) change(form, true)", "false) change(form, true)", on(_SENDING, "test_a_queued_answer_that_is_changed_is_replaced", "desk")),
    Mutant("a closed question keeps its buttons", "yourturn/web/static/article.js", "    closeForm(form, message);\n    announce(message);\n    reloadForm(form);\n", "", on(_CLOSED, "test_an_answer_by_another_person_removes_the_buttons", "desk")),
    Mutant("a copy forgets what was closed", "yourturn/web/static/article.js", "if (fragment) rememberClosed(id, message);", "", on(_CLOSED, "test_cached_page_of_a_closed_question_has_no_buttons", "desk")),
    Mutant("a copy counts from when it was drawn", "yourturn/web/static/time.js", '(isCopy ? storage.get("clock") : undefined) ?? ', "", on(_CLOSED, "test_cached_page_counts_down_to_the_same_deadline", "desk")),
    Mutant("1,000 is guessed", "yourturn/core/questions.py", "if _THOUSANDS.match(value):", "if False:", on(_ANSWERS, "test_an_answer_that_does_not_fit_leaves_the_question_open")),
    # --- a network that loses replies
    Mutant("a key that is null hides the header's", "yourturn/api/rpc.py", "and name and fields.get(name) is None:", "and name and name not in fields:", on(_LOST, "test_null_key_is_no_key")),
    Mutant("a change over HTTP has no key", "yourturn/client/remote.py", "key = fields.setdefault(name, f\"auto-{os.urandom(16).hex()}\")", "key = fields.get(name)", on(_LOST, "test_a_verb_whose_reply_is_lost_counts_once", "sqlite-note")),
    Mutant("looks are sent once", "yourturn/core/permissions.py", "    return operation(method) in _READS\n", "    return False\n", on(_LOOKED, "test_read_is_repeated_after_a_lost_reply", "sqlite-drop")),
    Mutant("what changes is a look", "yourturn/core/permissions.py", "    return operation(method) in _READS\n", "    return True\n", on(_LOOKED, "test_every_method_reads_or_takes_a_key_or_is_idempotent", "")),
    Mutant("what has no key is sent again", "yourturn/client/remote.py", " or (attempt.sent and not repeatable and key is None)", "", on(_LOST, "test_what_takes_no_key_is_sent_once")),
    Mutant("a change that was sent is said to be undone", "yourturn/client/remote.py", "if repeatable or not maybe_done or ", "if True or ", on(_LOST, "test_change_without_a_reply_names_its_key", "sqlite-lose")),
    Mutant("what is looked at afterwards hides a change", "yourturn/client/remote.py", 'self._shared.setdefault("done", key)', "pass", on(_LOST, "test_change_whose_result_cannot_be_read_is_reported_as_done", "sqlite-words0-unattended")),
    Mutant("a closed connection is written to", "yourturn/client/remote.py", "if connection.sock is not None and _readable(connection.sock):", "if False:", on(_LOOKED, "test_a_connection_that_was_closed_meanwhile_is_opened_again")),
    Mutant("two days from now are another request", "yourturn/desk/idempotency.py", '"circle", "proof", "until"})', '"circle", "proof"})', on(_LOST, "test_relative_date_is_the_same_in_a_repeated_request", "words0")),
    Mutant("the last task is completed twice", "yourturn/client/commands.py", 'say("complete", self.who, key=own, ', 'say("complete", self.who, ', on(_LOST, "test_the_next_task_is_taken_once_and_the_last_one_completed_once")),
    Mutant("a lost token is nobody's", "yourturn/client/remote.py", '{"secret": new_secret("yt"), **fields}', "fields", on(_LOST, "test_a_token_and_a_link_whose_reply_is_lost_are_good")),
    Mutant("a token may be short", "yourturn/client/admin.py", "if secret is not None and not re.fullmatch(", "if False and not re.fullmatch(", on(_LOST, "test_a_token_and_a_link_whose_reply_is_lost_are_good")),
    Mutant("a tool that is called again says it again", "yourturn/mcp/tools.py", "call_id = self._unconfirmed.pop(fingerprint, call_id)", "pass", on(_LOOKED, "test_the_tools_of_an_agent_lose_replies")),
    # --- two people at a time, and pages that are old
    Mutant("letters for a field that was closed are shortcuts", "yourturn/web/static/keys.js", "  event.stopImmediatePropagation();\n", "", on(_TWO, "test_keys_for_a_closed_field_press_nothing", "desk")),
    Mutant("the space bar presses what a key has chosen", "yourturn/web/static/keys.js", 'if (event.key === " " && event.target === chosenButton) event.preventDefault();', "", on(_TWO, "test_space_bar_does_not_press_the_chosen_button", "desk")),
    Mutant("a list that is drawn again takes the pane with it", "yourturn/web/static/list.js", "    if (!form) {", "    if (true) {", on(_TWO, "test_reloaded_list_keeps_the_draft", "desk")),
    Mutant("an answer that did not count is forgotten", "yourturn/web/static/outbox.js", "      else update(item, { state:", "      else if (drop(item.id), 0) update(item, { state:", on(_TWO, "test_late_answer_survives_a_failed_request_of_its_page", "desk")),
    Mutant("a refused answer is no draft", "yourturn/web/static/answer.js", "  saveDraft(form);\n  drop(id);\n", "  drop(id);\n", on(_TWO, "test_refused_answer_becomes_a_draft", "desk")),
    Mutant("a button acts on a task that its page did not show", "yourturn/web/page_version.py", "if same else seen", "if True else seen", (*on(_SHOWN, "test_hand_back_on_a_closed_question_leaves_the_next_one_alone", "desk-plain"), *on(_SHOWN, "test_hand_back_of_an_old_task_page_leaves_the_next_question_alone", ""))),
    Mutant("a page does not say which questions it showed", "yourturn/web/page_version.py", ', sorted(q["id"] for q in task["questions"] if q["status"] == PENDING)]', "]", on(_SHOWN, "test_hand_back_does_not_withdraw_an_unseen_question", "desk-plain")),
    Mutant("a heartbeat makes a page old", "yourturn/web/page_version.py", 'now["version"] if same else seen', "seen", on(_SHOWN, "test_heartbeat_and_note_do_not_outdate_a_page", "")),
    Mutant("a closed permission can be edited and allowed", "yourturn/web/edit_permission.py", """        return Redirect(f"/questions/{q['id']}")\n    edited""", "        pass\n    edited", on(_SHOWN, "test_a_version_of_a_closed_permission_is_not_offered", "")),
    Mutant("a silent line is live for ever", "yourturn/web/static/live.js", "watchSilence(MAX_SILENCE); setState", "clearTimeout(silenceTimer); setState", on(_LINE, "test_silent_stream_is_not_live", "desk")),
    Mutant("the first connection begins at now", "yourturn/web/static/live.js", 'isCopy ? "" : $("#pulse")?.dataset.after ?? ""', '""', on(_LINE, "test_question_during_a_refused_connection_is_not_missed", "desk")),
)  # fmt: skip
