-- LangGraph's savers write `lease` into a checkpoint's metadata, because the run's configuration has it there.
CREATE TRIGGER checkpoints_are_fenced BEFORE INSERT ON checkpoints
WHEN json_extract(CAST(NEW.metadata AS TEXT), '$.lease') <
     (SELECT token FROM leases WHERE thread_id = NEW.thread_id)
BEGIN SELECT RAISE(ABORT, 'lease lost'); END
