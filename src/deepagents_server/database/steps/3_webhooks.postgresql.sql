CREATE TABLE webhooks (
run_id TEXT NOT NULL,
address TEXT NOT NULL,
body TEXT NOT NULL,
attempt BIGINT DEFAULT '0' NOT NULL,
due_at TEXT NOT NULL,
PRIMARY KEY (run_id)
)

CREATE INDEX webhooks_by_date ON webhooks (due_at)
