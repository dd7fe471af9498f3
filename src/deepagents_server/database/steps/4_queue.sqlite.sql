CREATE INDEX runs_in_line ON runs (thread_id, created_at) WHERE status = 'pending'
