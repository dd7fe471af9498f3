ALTER TABLE runs ADD COLUMN number BIGINT DEFAULT '0' NOT NULL

UPDATE runs SET number = first.place FROM (
SELECT run_id AS id, row_number() OVER (ORDER BY created_at, run_id) AS place FROM runs
) AS first WHERE first.id = runs.run_id

CREATE INDEX runs_by_number ON runs (number)

ALTER TABLE runs ADD COLUMN turn BIGINT DEFAULT '0' NOT NULL

CREATE INDEX runs_in_turn ON runs (status, turn, number) WHERE status = 'pending'

CREATE INDEX runs_of_owner_in_turn ON runs (owner, turn) WHERE status = 'pending'

CREATE SEQUENCE runs_number

SELECT setval('runs_number', (SELECT coalesce(max(number), 0) + 1 FROM runs))

-- A session keeps the plan that it made, perhaps while the table was empty: so never to read all of it.
CREATE FUNCTION number_run() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  NEW.number := nextval('runs_number');
  IF NEW.status = 'pending' THEN
    NEW.turn := greatest(
      coalesce((SELECT max(turn) + 1 FROM runs WHERE status = 'pending' AND owner = NEW.owner), 0),
      coalesce((SELECT min(turn) FROM runs WHERE status = 'pending'), 0)
    );
  END IF;
  RETURN NEW;
END $$

-- Which run came first, no clock says: whoever adds a run of a thread has its lease locked. Its turn is one
-- after that of the last run of its owner that waits, and not before that of all who wait.
CREATE TRIGGER runs_are_numbered BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION number_run()

CREATE FUNCTION server_time(later DOUBLE PRECISION) RETURNS TEXT LANGUAGE sql STABLE AS $$
  SELECT to_char(
    (statement_timestamp() + make_interval(secs => later)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US+00:00'
  )
$$

DROP INDEX runs_by_thread

CREATE INDEX runs_by_thread ON runs (thread_id, number)

DROP INDEX runs_in_line

CREATE INDEX runs_in_line ON runs (thread_id, number) WHERE status = 'pending'

DROP INDEX runs_by_urgency

CREATE INDEX runs_by_urgency ON runs (status, owner, priority DESC, number) WHERE status = 'pending'

CREATE INDEX runs_of_owner ON runs (owner, status)

CREATE INDEX threads_by_status ON threads (owner, status, updated_at)

CREATE INDEX threads_by_metadata ON threads USING gin (metadata jsonb_path_ops) WITH (fastupdate = off)

CREATE INDEX crons_of_owner ON crons (owner)
