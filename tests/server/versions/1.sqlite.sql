BEGIN TRANSACTION;
CREATE TABLE api_keys (
key_id TEXT NOT NULL,
owner TEXT NOT NULL,
digest TEXT NOT NULL,
created_at TEXT NOT NULL,
expires_at TEXT,
revoked_at TEXT,
PRIMARY KEY (key_id)
);
CREATE TABLE assistant_versions (
assistant_id TEXT NOT NULL,
version BIGINT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
graph_id TEXT NOT NULL,
name TEXT DEFAULT '' NOT NULL,
description TEXT,
config JSON DEFAULT '{}' NOT NULL,
context JSON DEFAULT '{}' NOT NULL,
metadata JSON DEFAULT '{}' NOT NULL,
created_at TEXT NOT NULL,
PRIMARY KEY (assistant_id, version)
);
INSERT INTO "assistant_versions" VALUES('046b5dc7-2108-582c-9c6c-31d556d138f0',1,'*','echo','echo',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.362129+00:00');
INSERT INTO "assistant_versions" VALUES('938fdfa4-6ada-5da4-99ea-62a3205cb478',1,'*','gate','gate',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.365448+00:00');
INSERT INTO "assistant_versions" VALUES('aa010538-f22f-5082-a0cb-63196a75e726',1,'*','deep','deep',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.366673+00:00');
INSERT INTO "assistant_versions" VALUES('7b61c2e8-2f71-5397-8021-1459b1f12d69',1,'*','lifter','lifter',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.367841+00:00');
INSERT INTO "assistant_versions" VALUES('d5041ea1-17e3-5fca-acb5-2dd80987bcfc',1,'*','notes','notes',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.368979+00:00');
INSERT INTO "assistant_versions" VALUES('cc5e30fc-9b66-5ff0-b30f-b44fcf8618c2',1,'*','obedient','obedient',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.370114+00:00');
INSERT INTO "assistant_versions" VALUES('696ee861-f439-5b9e-a677-c4c2f9d78be6',1,'*','waiter','waiter',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.371126+00:00');
INSERT INTO "assistant_versions" VALUES('8eb19f2b-cba8-5a44-80e3-9eb3acc1aa2c',1,'*','outer','outer',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.372177+00:00');
INSERT INTO "assistant_versions" VALUES('417c3a6a-d71d-5907-a9b9-f5cf99061ed2',1,'*','boss','boss',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.373142+00:00');
INSERT INTO "assistant_versions" VALUES('65dbb49a-b111-5f96-a817-a0651857b8ba',1,'*','digger','digger',NULL,'{}','{}','{"created_by": "system"}','2026-11-23T06:16:48.374275+00:00');
CREATE TABLE assistants (
assistant_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
graph_id TEXT NOT NULL,
name TEXT DEFAULT '' NOT NULL,
description TEXT,
config JSON DEFAULT '{}' NOT NULL,
context JSON DEFAULT '{}' NOT NULL,
metadata JSON DEFAULT '{}' NOT NULL,
version BIGINT DEFAULT '1' NOT NULL,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
PRIMARY KEY (assistant_id)
);
INSERT INTO "assistants" VALUES('046b5dc7-2108-582c-9c6c-31d556d138f0','*','echo','echo',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('938fdfa4-6ada-5da4-99ea-62a3205cb478','*','gate','gate',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('aa010538-f22f-5082-a0cb-63196a75e726','*','deep','deep',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('7b61c2e8-2f71-5397-8021-1459b1f12d69','*','lifter','lifter',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('d5041ea1-17e3-5fca-acb5-2dd80987bcfc','*','notes','notes',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('cc5e30fc-9b66-5ff0-b30f-b44fcf8618c2','*','obedient','obedient',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('696ee861-f439-5b9e-a677-c4c2f9d78be6','*','waiter','waiter',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('8eb19f2b-cba8-5a44-80e3-9eb3acc1aa2c','*','outer','outer',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('417c3a6a-d71d-5907-a9b9-f5cf99061ed2','*','boss','boss',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
INSERT INTO "assistants" VALUES('65dbb49a-b111-5f96-a817-a0651857b8ba','*','digger','digger',NULL,'{}','{}','{"created_by": "system"}',1,'2026-11-23T06:16:48.358117+00:00','2026-11-23T06:16:48.358117+00:00');
CREATE TABLE checkpoints (
                thread_id TEXT NOT NULL,
                checkpoint_ns TEXT NOT NULL DEFAULT '',
                checkpoint_id TEXT NOT NULL,
                parent_checkpoint_id TEXT,
                type TEXT,
                checkpoint BLOB,
                metadata BLOB,
                PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
            );
INSERT INTO "checkpoints" VALUES('00000000-0000-4000-8000-000000000001','','1f1e7057-7289-60ce-8000-d11735b6f450',NULL,'msgpack',X'87A17604A27473D920323032362D31312D32335430363A31363A34382E3531393538322B30303A3030A26964D92431663165373035372D373238392D363063652D383030302D643131373335623666343530AE6368616E6E656C5F76616C75657381A86D6573736167657391C7AF0594BD6C616E67636861696E5F636F72652E6D657373616765732E68756D616EAC48756D616E4D65737361676586A7636F6E74656E74A568656C6C6FB16164646974696F6E616C5F6B776172677380B1726573706F6E73655F6D6574616461746180A474797065A568756D616EA46E616D65C0A26964D92437353562303862312D316363612D343232632D383663382D326438306533366637393830B36D6F64656C5F76616C69646174655F6A736F6EB06368616E6E656C5F76657273696F6E7381A86D65737361676573D93330303030303030303030303030303030303030303030303030303030303030312E302E35313539383839353136343531353437AD76657273696F6E735F7365656E81A6616E7377657280B0757064617465645F6368616E6E656C73C0',X'7B22736F75726365223A2022757064617465222C202273746570223A20302C2022706172656E7473223A207B7D7D');
CREATE TABLE commands (
run_id TEXT NOT NULL,
call_id TEXT NOT NULL,
attempt BIGINT DEFAULT '0' NOT NULL,
began_at TEXT NOT NULL,
ended_at TEXT,
exit_code BIGINT,
PRIMARY KEY (run_id, call_id)
);
CREATE TABLE crons (
cron_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
assistant_id TEXT NOT NULL,
thread_id TEXT,
schedule TEXT NOT NULL,
timezone TEXT,
payload TEXT NOT NULL,
metadata JSON DEFAULT '{}' NOT NULL,
enabled SMALLINT DEFAULT '1' NOT NULL,
on_run_completed TEXT,
end_time TEXT,
next_run_date TEXT,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
PRIMARY KEY (cron_id)
);
CREATE TABLE leases (
thread_id TEXT NOT NULL,
run_id TEXT,
worker TEXT,
token BIGINT DEFAULT '0' NOT NULL,
removed_at TEXT,
PRIMARY KEY (thread_id)
);
INSERT INTO "leases" VALUES('00000000-0000-4000-8000-000000000001',NULL,NULL,0,NULL);
INSERT INTO "leases" VALUES('00000000-0000-4000-8000-000000000002',NULL,NULL,0,NULL);
CREATE TABLE quotas (
owner TEXT NOT NULL,
runs BIGINT,
tokens BIGINT,
money FLOAT,
seconds BIGINT DEFAULT '86400' NOT NULL,
began_at FLOAT DEFAULT '0' NOT NULL,
used_tokens BIGINT DEFAULT '0' NOT NULL,
used_money FLOAT DEFAULT '0' NOT NULL,
PRIMARY KEY (owner)
);
CREATE TABLE run_events (
run_id TEXT NOT NULL,
seq BIGINT NOT NULL,
events TEXT NOT NULL,
created_at TEXT NOT NULL,
PRIMARY KEY (run_id, seq)
);
CREATE TABLE runs (
run_id TEXT NOT NULL,
thread_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
assistant_id TEXT NOT NULL,
graph_id TEXT NOT NULL,
status TEXT DEFAULT 'pending' NOT NULL,
metadata JSON DEFAULT '{}' NOT NULL,
kwargs TEXT NOT NULL,
multitask_strategy TEXT DEFAULT 'enqueue' NOT NULL,
priority BIGINT DEFAULT '0' NOT NULL,
version TEXT DEFAULT '1' NOT NULL,
attempt BIGINT DEFAULT '0' NOT NULL,
cancelled TEXT,
error TEXT,
due_at TEXT NOT NULL,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
PRIMARY KEY (run_id)
);
INSERT INTO "runs" VALUES('1f1e7057-72d2-64f3-9018-9064477fc181','00000000-0000-4000-8000-000000000002','','046b5dc7-2108-582c-9c6c-31d556d138f0','echo','pending','{"created_by": "system", "graph_id": "echo", "assistant_id": "046b5dc7-2108-582c-9c6c-31d556d138f0"}','{"input":{"messages":[{"role":"user","content":"go on"}]},"stream_mode":"values","stream_subgraphs":false,"stream_resumable":false,"config":{"configurable":{}},"checkpoint":{}}','enqueue',0,'1',0,NULL,NULL,'2026-11-23T06:16:48.549674+00:00','2026-11-23T06:16:48.549674+00:00','2026-11-23T06:16:48.549674+00:00');
CREATE TABLE server_migrations (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "server_migrations" VALUES(1);
CREATE TABLE store (
    -- 'prefix' represents the doc's 'namespace'
    prefix text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL,
    PRIMARY KEY (prefix, key)
);
INSERT INTO "store" VALUES('notes','tide',X'7B22686569676874223A31337D','2026-11-23 06:16:48','2026-11-23 06:16:48',NULL,NULL);
CREATE TABLE store_migrations (
                    v INTEGER PRIMARY KEY
                );
INSERT INTO "store_migrations" VALUES(0);
INSERT INTO "store_migrations" VALUES(1);
INSERT INTO "store_migrations" VALUES(2);
INSERT INTO "store_migrations" VALUES(3);
INSERT INTO "store_migrations" VALUES(4);
CREATE TABLE threads (
thread_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
status TEXT DEFAULT 'idle' NOT NULL,
metadata JSON DEFAULT '{}' NOT NULL,
config JSON DEFAULT '{}' NOT NULL,
"values" TEXT,
interrupts TEXT DEFAULT '{}' NOT NULL,
error TEXT,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
state_updated_at TEXT NOT NULL,
ttl_seconds BIGINT,
ttl_strategy TEXT,
thinned_at TEXT,
PRIMARY KEY (thread_id)
);
INSERT INTO "threads" VALUES('00000000-0000-4000-8000-000000000001','','idle','{"graph_id": "echo"}','{}','{"messages":[{"content":"hello","additional_kwargs":{},"response_metadata":{},"type":"human","name":null,"id":"755b08b1-1cca-422c-86c8-2d80e36f7980"}],"steps":[]}','{}',NULL,'2026-11-23T06:16:48.496816+00:00','2026-11-23T06:16:48.522137+00:00','2026-11-23T06:16:48.522111+00:00',NULL,NULL,NULL);
INSERT INTO "threads" VALUES('00000000-0000-4000-8000-000000000002','','busy','{"graph_id": "echo", "assistant_id": "046b5dc7-2108-582c-9c6c-31d556d138f0"}','{}',NULL,'{}',NULL,'2026-11-23T06:16:48.533793+00:00','2026-11-23T06:16:48.553317+00:00','2026-11-23T06:16:48.533793+00:00',NULL,NULL,NULL);
CREATE TABLE workers (
worker_id TEXT NOT NULL,
seen_at FLOAT NOT NULL,
host TEXT DEFAULT '' NOT NULL,
PRIMARY KEY (worker_id)
);
CREATE TABLE writes (
                thread_id TEXT NOT NULL,
                checkpoint_ns TEXT NOT NULL DEFAULT '',
                checkpoint_id TEXT NOT NULL,
                task_id TEXT NOT NULL,
                task_path TEXT NOT NULL DEFAULT '',
                idx INTEGER NOT NULL,
                channel TEXT NOT NULL,
                type TEXT,
                value BLOB,
                PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
            );
CREATE INDEX store_prefix_idx ON store (prefix);
CREATE INDEX idx_store_expires_at ON store (expires_at)
WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX api_keys_by_digest ON api_keys (digest);
CREATE INDEX assistants_by_graph ON assistants (graph_id);
CREATE INDEX crons_by_date ON crons (enabled, next_run_date);
CREATE INDEX leases_by_removal ON leases (removed_at);
CREATE INDEX leases_by_worker ON leases (worker);
CREATE INDEX run_events_by_age ON run_events (created_at);
CREATE INDEX runs_by_age ON runs (updated_at);
CREATE INDEX runs_by_thread ON runs (thread_id, created_at);
CREATE INDEX runs_to_start ON runs (status, due_at);
CREATE INDEX threads_by_age ON threads (updated_at);
CREATE INDEX threads_by_ttl ON threads (ttl_seconds);
CREATE INDEX threads_by_update ON threads (owner, updated_at);
COMMIT;
