CREATE INDEX threads_by_metadata ON threads USING gin (metadata jsonb_path_ops) WITH (fastupdate = off)

-- LangGraph's savers write `lease` into a checkpoint's metadata, because the run's configuration has it there.
CREATE FUNCTION refuse_lost_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.metadata ->> 'lease')::bigint <
     (SELECT token FROM leases WHERE thread_id = NEW.thread_id FOR SHARE) THEN
    RAISE EXCEPTION 'lease lost' USING ERRCODE = 'lock_not_available';
  END IF;
  RETURN NEW;
END $$

CREATE TRIGGER checkpoints_are_fenced BEFORE INSERT OR UPDATE ON checkpoints
FOR EACH ROW EXECUTE FUNCTION refuse_lost_lease()

CREATE SEQUENCE runs_number

CREATE FUNCTION number_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.number := nextval('runs_number');
  RETURN NEW;
END $$

-- Which run came first, no clock says: whoever adds a run of a thread has its lease locked.
CREATE TRIGGER runs_are_numbered BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION number_run()

CREATE FUNCTION server_time(later DOUBLE PRECISION) RETURNS TEXT LANGUAGE sql STABLE AS $$
  SELECT to_char(
    (statement_timestamp() + make_interval(secs => later)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US+00:00'
  )
$$
