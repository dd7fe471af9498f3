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
