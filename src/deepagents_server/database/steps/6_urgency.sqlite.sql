CREATE INDEX runs_by_urgency ON runs (status, priority DESC, created_at) WHERE status = 'pending'
