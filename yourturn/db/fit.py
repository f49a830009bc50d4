"""The CHECKs of a busy table, as PostgreSQL checks them quickly.

PostgreSQL reads every CHECK of a table anew for each statement that writes to it: with thirty of them, that is half of
what a move costs. The same conditions in one trigger are read once per connection. So schema.sql says them once, as CHECKs;
here they are taken out of the table and put into a function, and a row that breaks one is refused with the same error.
"""

from __future__ import annotations

import re

from .sql_loader import read

TABLES = ("tasks", "questions")
_WORD = re.compile(r"'[^']*'|\b[a-z_]+\b")


#: For a database whose tables still have them.
DROP_CHECKS = f""";;
DO $$ DECLARE found record; BEGIN
    FOR found IN SELECT conrelid::regclass AS tab, conname FROM pg_constraint
        WHERE contype = 'c' AND conrelid IN ({", ".join(f"'{name}'::regclass" for name in TABLES)})
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.tab, found.conname); END LOOP;
END $$
;;"""


def bare(statement: str) -> str:
    """A CREATE TABLE of one of these without its CHECKs; anything else as it is."""
    if not re.match(rf"CREATE TABLE ({'|'.join(TABLES)})\b", statement):
        return statement
    while (at := statement.find("CHECK (")) >= 0:
        end = _closing(statement, at + len("CHECK "))
        statement = statement[:at].rstrip() + statement[end + 1 :]
    return re.sub(r",(\s*,)+", ",", statement).replace(",\n)", "\n)")


def triggers() -> str:
    """A function and a trigger for each of the tables."""
    return ";;".join(["", *(_trigger(table) for table in TABLES), ""])


def refit() -> str:
    """The same for a database that has older ones."""
    return ";;".join(["", *(f"DROP FUNCTION yourturn_fit_{table}() CASCADE" for table in TABLES), triggers()])


def _trigger(table: str) -> str:
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\) ", read("schema.sql"), re.S)
    assert body
    text = "\n".join(line.split("--")[0] for line in body[1].splitlines())
    columns = set(re.findall(r"^    ([a-z_]+) +[A-Z{]", text, re.M))
    checks = []
    at = 0
    while (at := text.find("CHECK (", at)) >= 0:
        end = _closing(text, at + len("CHECK "))
        checks.append(" ".join(text[at + len("CHECK ") : end + 1].split()))
        at = end
    rule = _WORD.sub(lambda word: f"NEW.{word[0]}" if word[0] in columns else word[0], " AND ".join(checks))
    return (
        f"CREATE FUNCTION yourturn_fit_{table}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF ({rule}) IS FALSE THEN RAISE check_violation USING MESSAGE = 'a row of {table} would break the schema'; "
        f"END IF; RETURN NEW; END $$;;"
        f"CREATE TRIGGER {table}_fit BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION yourturn_fit_{table}()"
    )


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("unbalanced")
