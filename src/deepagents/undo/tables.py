"""Define the tables of the file in which a history is kept, and what is asked of several of them."""

from __future__ import annotations

from typing import Final

SCHEMA: Final = """
CREATE TABLE contents(id INTEGER PRIMARY KEY, digest BLOB UNIQUE NOT NULL, size INTEGER NOT NULL,
  data BLOB NOT NULL);
CREATE TABLE entries(path BLOB PRIMARY KEY, state BLOB NOT NULL, size INTEGER, modified INTEGER,
  changed INTEGER, inode INTEGER, mode INTEGER, racy INTEGER) WITHOUT ROWID;
CREATE TABLE roots(path BLOB PRIMARY KEY, generation INTEGER NOT NULL, ignores TEXT NOT NULL,
  used REAL NOT NULL);
CREATE TABLE seen(id INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL, step INTEGER NOT NULL,
  path BLOB, before BLOB, after BLOB, shared INTEGER NOT NULL, rewind TEXT, at REAL NOT NULL);
CREATE INDEX seen_by_thread ON seen(thread, id);
CREATE TABLE steps(id INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL, kind TEXT NOT NULL,
  process TEXT NOT NULL, places TEXT NOT NULL, notes TEXT NOT NULL, ended INTEGER);
CREATE INDEX steps_under_way ON steps(id) WHERE ended IS NULL;
CREATE INDEX steps_by_thread ON steps(thread, ended);
CREATE TABLE checkpoints(thread TEXT, id TEXT, seen INTEGER NOT NULL, PRIMARY KEY(thread, id)) WITHOUT ROWID;
CREATE TABLE lines(thread TEXT PRIMARY KEY, source TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE journal(id TEXT PRIMARY KEY, process TEXT NOT NULL, thread TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE news(thread TEXT, path BLOB, alone INTEGER NOT NULL, PRIMARY KEY(thread, path)) WITHOUT ROWID;
CREATE TABLE dropped(thread TEXT, path BLOB, until INTEGER NOT NULL, PRIMARY KEY(thread, path)) WITHOUT ROWID;
CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
TURNS: Final = """
CREATE TABLE IF NOT EXISTS rules(id INTEGER PRIMARY KEY, ignores TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS rules_of_turns(thread TEXT, root BLOB, rules INTEGER NOT NULL,
  PRIMARY KEY(thread, root)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_by_rewind ON seen(rewind) WHERE rewind IS NOT NULL;
"""
"""Hold the rules with which the last turn of each thread began; many turns have the same."""
KEEP_RULES: Final = (
    "INSERT OR IGNORE INTO rules(ignores) SELECT ignores FROM roots WHERE path = :root",
    """INSERT OR IGNORE INTO rules_of_turns SELECT :thread, path, rules.id
    FROM roots JOIN rules USING (ignores) WHERE path = :root""",
)
RULES_OF_TURNS: Final = """
SELECT DISTINCT rules.id, ignores FROM rules_of_turns JOIN rules ON rules.id = rules
WHERE root = ? AND (thread = ? OR thread IN (
  SELECT thread FROM steps INDEXED BY steps_under_way WHERE ended IS NULL))
"""
OLD_TURNS: Final = """
FROM rules_of_turns WHERE thread NOT IN (
  SELECT thread FROM seen WHERE at > ? UNION SELECT thread FROM steps WHERE ended IS NULL)
"""
WITHOUT_TURNS: Final = "DELETE FROM rules WHERE id NOT IN (SELECT rules FROM rules_of_turns)"
OLD_RECORDS: Final = """
SELECT id FROM seen WHERE at < ? AND step NOT IN (
  SELECT max(step) FROM seen WHERE path IS NOT NULL GROUP BY thread) ORDER BY id
"""
"""Those that may be dropped: never the newest of a thread."""
OF_THREADS: Final = (
    *(
        (table, "thread")
        for table in ("seen", "steps", "checkpoints", "lines", "news", "dropped", "rules_of_turns")
    ),
    ("about", "value"),
)
"""Where the name of a thread stands."""
FORGOTTEN: Final = "forgotten "
"""Begins the name of what is known about a thread that is gone, and that others were copied from."""
REFERRED: Final = """
DELETE FROM contents WHERE id <= ? AND digest NOT IN (
  SELECT substr(state, 6) FROM entries WHERE substr(state, 1, 1) = x'66'
  UNION SELECT substr(before, 6) FROM seen WHERE substr(before, 1, 1) = x'66'
  UNION SELECT substr(after, 6) FROM seen WHERE substr(after, 1, 1) = x'66')
"""
WITHOUT_RECORDS: Final = "DELETE FROM steps WHERE ended IS NOT NULL AND id NOT IN (SELECT step FROM seen)"
ALL_AT_WORK: Final = "SELECT process FROM steps WHERE ended IS NULL UNION SELECT process FROM journal"
AT_WORK: Final = """
SELECT 1 FROM steps WHERE ended IS NULL AND process = ? UNION ALL SELECT 1 FROM journal WHERE process = ?
"""
