-- LangGraph's savers write `lease` into a checkpoint's metadata, because the run's configuration has it there.
CREATE TRIGGER checkpoints_are_fenced BEFORE INSERT ON checkpoints
WHEN json_extract(CAST(NEW.metadata AS TEXT), '$.lease') <
     (SELECT token FROM leases WHERE thread_id = NEW.thread_id)
BEGIN SELECT RAISE(ABORT, 'lease lost'); END

-- Which run came first, no clock says.
CREATE TRIGGER runs_are_numbered AFTER INSERT ON runs
BEGIN UPDATE runs SET number = (SELECT max(number) + 1 FROM runs) WHERE run_id = NEW.run_id; END

CREATE TABLE thread_labels (
thread_id TEXT NOT NULL,
name TEXT NOT NULL,
owner TEXT NOT NULL,
value TEXT NOT NULL,
PRIMARY KEY (thread_id, name)
)

CREATE INDEX threads_by_label ON thread_labels (owner, name, value)

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
