ALTER TABLE runs ADD COLUMN number BIGINT DEFAULT '0' NOT NULL

UPDATE runs SET number = first.place FROM (
SELECT run_id AS id, row_number() OVER (ORDER BY created_at, run_id) AS place FROM runs
) AS first WHERE first.id = runs.run_id

CREATE INDEX runs_by_number ON runs (number)

ALTER TABLE runs ADD COLUMN turn BIGINT DEFAULT '0' NOT NULL

CREATE INDEX runs_in_turn ON runs (status, turn, number) WHERE status = 'pending'

CREATE INDEX runs_of_owner_in_turn ON runs (owner, turn) WHERE status = 'pending'

-- Which run came first, no clock says. Its turn is one after that of the last run of its owner that waits,
-- and not before that of all who wait.
CREATE TRIGGER runs_are_numbered AFTER INSERT ON runs
BEGIN
UPDATE runs SET number = (SELECT max(number) + 1 FROM runs), turn = max(
  coalesce((SELECT max(turn) + 1 FROM runs WHERE status = 'pending' AND owner = NEW.owner AND run_id != NEW.run_id), 0),
  coalesce((SELECT turn FROM runs WHERE status = 'pending' AND run_id != NEW.run_id ORDER BY status, turn, number LIMIT 1), 0)
) WHERE run_id = NEW.run_id;
END

DROP INDEX runs_by_thread

CREATE INDEX runs_by_thread ON runs (thread_id, number)

DROP INDEX runs_in_line

CREATE INDEX runs_in_line ON runs (thread_id, number) WHERE status = 'pending'

DROP INDEX runs_by_urgency

CREATE INDEX runs_by_urgency ON runs (status, owner, priority DESC, number) WHERE status = 'pending'

CREATE INDEX runs_of_owner ON runs (owner, status)

CREATE INDEX threads_by_status ON threads (owner, status, updated_at)

CREATE INDEX crons_of_owner ON crons (owner)

CREATE TABLE thread_labels (
thread_id TEXT NOT NULL,
name TEXT NOT NULL,
owner TEXT NOT NULL,
value TEXT NOT NULL,
PRIMARY KEY (thread_id, name)
)

CREATE INDEX threads_by_label ON thread_labels (owner, name, value)

INSERT INTO thread_labels SELECT thread_id, key, owner, substr(value, 1, 100)
FROM threads, json_each(threads.metadata) WHERE type = 'text'

CREATE TRIGGER threads_are_labelled AFTER INSERT ON threads
BEGIN
INSERT INTO thread_labels SELECT NEW.thread_id, key, NEW.owner, substr(value, 1, 100)
FROM json_each(NEW.metadata) WHERE type = 'text';
END

CREATE TRIGGER threads_change_labels AFTER UPDATE OF metadata ON threads WHEN OLD.metadata IS NOT NEW.metadata
BEGIN
DELETE FROM thread_labels WHERE thread_id = NEW.thread_id;
INSERT INTO thread_labels SELECT NEW.thread_id, key, NEW.owner, substr(value, 1, 100)
FROM json_each(NEW.metadata) WHERE type = 'text';
END

CREATE TRIGGER threads_lose_labels AFTER DELETE ON threads
BEGIN DELETE FROM thread_labels WHERE thread_id = OLD.thread_id; END

ANALYZE sqlite_schema

-- What SQLite cannot guess, and would otherwise read for: an owner may have most of all threads.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
('threads', 'sqlite_autoindex_threads_1', '100000 1'),
('threads', 'threads_by_update', '100000 50000 1'),
('threads', 'threads_by_status', '100000 50000 25000 1'),
('threads', 'threads_by_age', '100000 1'),
('threads', 'threads_by_ttl', '100000 50000')


ANALYZE sqlite_schema
