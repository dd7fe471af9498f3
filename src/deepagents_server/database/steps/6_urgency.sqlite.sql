CREATE INDEX runs_by_urgency ON runs (status, priority DESC, created_at) WHERE status = 'pending'

CREATE INDEX crons_by_thread ON crons (thread_id)
