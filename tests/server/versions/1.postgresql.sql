SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.api_keys (
    key_id text NOT NULL,
    owner text NOT NULL,
    digest text NOT NULL,
    created_at text NOT NULL,
    expires_at text,
    revoked_at text
);
CREATE TABLE public.assistant_versions (
    assistant_id text NOT NULL,
    version bigint NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    graph_id text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    description text,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    context jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at text NOT NULL
);
CREATE TABLE public.assistants (
    assistant_id text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    graph_id text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    description text,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    context jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    version bigint DEFAULT '1'::bigint NOT NULL,
    created_at text NOT NULL,
    updated_at text NOT NULL
);
CREATE TABLE public.checkpoint_blobs (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    channel text NOT NULL,
    version text NOT NULL,
    type text NOT NULL,
    blob bytea
);
CREATE TABLE public.checkpoint_migrations (
    v integer NOT NULL
);
CREATE TABLE public.checkpoint_writes (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    idx integer NOT NULL,
    channel text NOT NULL,
    type text,
    blob bytea NOT NULL,
    task_path text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL
);
CREATE TABLE public.commands (
    run_id text NOT NULL,
    call_id text NOT NULL,
    attempt bigint DEFAULT '0'::bigint NOT NULL,
    began_at text NOT NULL,
    ended_at text,
    exit_code bigint
);
CREATE TABLE public.crons (
    cron_id text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    assistant_id text NOT NULL,
    thread_id text,
    schedule text NOT NULL,
    timezone text,
    payload text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    enabled smallint DEFAULT '1'::smallint NOT NULL,
    on_run_completed text,
    end_time text,
    next_run_date text,
    created_at text NOT NULL,
    updated_at text NOT NULL
);
CREATE TABLE public.leases (
    thread_id text NOT NULL,
    run_id text,
    worker text,
    token bigint DEFAULT '0'::bigint NOT NULL,
    removed_at text
);
CREATE TABLE public.quotas (
    owner text NOT NULL,
    runs bigint,
    tokens bigint,
    money double precision,
    seconds bigint DEFAULT '86400'::bigint NOT NULL,
    began_at double precision DEFAULT '0'::double precision NOT NULL,
    used_tokens bigint DEFAULT '0'::bigint NOT NULL,
    used_money double precision DEFAULT '0'::double precision NOT NULL
);
CREATE TABLE public.run_events (
    run_id text NOT NULL,
    seq bigint NOT NULL,
    events text NOT NULL,
    created_at text NOT NULL
);
CREATE TABLE public.runs (
    run_id text NOT NULL,
    thread_id text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    assistant_id text NOT NULL,
    graph_id text NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    kwargs text NOT NULL,
    multitask_strategy text DEFAULT 'enqueue'::text NOT NULL,
    priority bigint DEFAULT '0'::bigint NOT NULL,
    version text DEFAULT '1'::text NOT NULL,
    attempt bigint DEFAULT '0'::bigint NOT NULL,
    cancelled text,
    error text,
    due_at text NOT NULL,
    created_at text NOT NULL,
    updated_at text NOT NULL
);
CREATE TABLE public.server_migrations (
    version integer NOT NULL
);
CREATE TABLE public.store (
    prefix text NOT NULL,
    key text NOT NULL,
    value jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    expires_at timestamp with time zone,
    ttl_minutes integer
);
CREATE TABLE public.store_migrations (
    v integer NOT NULL
);
CREATE TABLE public.threads (
    thread_id text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    status text DEFAULT 'idle'::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    "values" text,
    interrupts text DEFAULT '{}'::text NOT NULL,
    error text,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    state_updated_at text NOT NULL,
    ttl_seconds bigint,
    ttl_strategy text,
    thinned_at text
);
CREATE TABLE public.workers (
    worker_id text NOT NULL,
    seen_at double precision NOT NULL,
    host text DEFAULT ''::text NOT NULL
);
INSERT INTO public.assistant_versions VALUES ('046b5dc7-2108-582c-9c6c-31d556d138f0', 1, '*', 'echo', 'echo', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.693289+00:00');
INSERT INTO public.assistant_versions VALUES ('938fdfa4-6ada-5da4-99ea-62a3205cb478', 1, '*', 'gate', 'gate', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.702861+00:00');
INSERT INTO public.assistant_versions VALUES ('aa010538-f22f-5082-a0cb-63196a75e726', 1, '*', 'deep', 'deep', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.709789+00:00');
INSERT INTO public.assistant_versions VALUES ('7b61c2e8-2f71-5397-8021-1459b1f12d69', 1, '*', 'lifter', 'lifter', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.717460+00:00');
INSERT INTO public.assistant_versions VALUES ('d5041ea1-17e3-5fca-acb5-2dd80987bcfc', 1, '*', 'notes', 'notes', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.720273+00:00');
INSERT INTO public.assistant_versions VALUES ('cc5e30fc-9b66-5ff0-b30f-b44fcf8618c2', 1, '*', 'obedient', 'obedient', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.725234+00:00');
INSERT INTO public.assistant_versions VALUES ('696ee861-f439-5b9e-a677-c4c2f9d78be6', 1, '*', 'waiter', 'waiter', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.731878+00:00');
INSERT INTO public.assistant_versions VALUES ('8eb19f2b-cba8-5a44-80e3-9eb3acc1aa2c', 1, '*', 'outer', 'outer', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.739923+00:00');
INSERT INTO public.assistant_versions VALUES ('417c3a6a-d71d-5907-a9b9-f5cf99061ed2', 1, '*', 'boss', 'boss', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.742581+00:00');
INSERT INTO public.assistant_versions VALUES ('65dbb49a-b111-5f96-a817-a0651857b8ba', 1, '*', 'digger', 'digger', NULL, '{}', '{}', '{"created_by": "system"}', '2026-11-23T06:16:50.748014+00:00');
INSERT INTO public.assistants VALUES ('046b5dc7-2108-582c-9c6c-31d556d138f0', '*', 'echo', 'echo', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('938fdfa4-6ada-5da4-99ea-62a3205cb478', '*', 'gate', 'gate', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('aa010538-f22f-5082-a0cb-63196a75e726', '*', 'deep', 'deep', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('7b61c2e8-2f71-5397-8021-1459b1f12d69', '*', 'lifter', 'lifter', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('d5041ea1-17e3-5fca-acb5-2dd80987bcfc', '*', 'notes', 'notes', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('cc5e30fc-9b66-5ff0-b30f-b44fcf8618c2', '*', 'obedient', 'obedient', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('696ee861-f439-5b9e-a677-c4c2f9d78be6', '*', 'waiter', 'waiter', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('8eb19f2b-cba8-5a44-80e3-9eb3acc1aa2c', '*', 'outer', 'outer', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('417c3a6a-d71d-5907-a9b9-f5cf99061ed2', '*', 'boss', 'boss', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.assistants VALUES ('65dbb49a-b111-5f96-a817-a0651857b8ba', '*', 'digger', 'digger', NULL, '{}', '{}', '{"created_by": "system"}', 1, '2026-11-23T06:16:50.688353+00:00', '2026-11-23T06:16:50.688353+00:00');
INSERT INTO public.checkpoint_blobs VALUES ('00000000-0000-4000-8000-000000000001', '', 'messages', '00000000000000000000000000000001.0.3626826125528977', 'msgpack', '\x91c7af0594bd6c616e67636861696e5f636f72652e6d657373616765732e68756d616eac48756d616e4d65737361676586a7636f6e74656e74a568656c6c6fb16164646974696f6e616c5f6b776172677380b1726573706f6e73655f6d6574616461746180a474797065a568756d616ea46e616d65c0a26964d92436333861636538342d313930362d346234362d613137642d643865616663376130366234b36d6f64656c5f76616c69646174655f6a736f6e');
INSERT INTO public.checkpoint_migrations VALUES (0);
INSERT INTO public.checkpoint_migrations VALUES (1);
INSERT INTO public.checkpoint_migrations VALUES (2);
INSERT INTO public.checkpoint_migrations VALUES (3);
INSERT INTO public.checkpoint_migrations VALUES (4);
INSERT INTO public.checkpoint_migrations VALUES (5);
INSERT INTO public.checkpoint_migrations VALUES (6);
INSERT INTO public.checkpoint_migrations VALUES (7);
INSERT INTO public.checkpoint_migrations VALUES (8);
INSERT INTO public.checkpoint_migrations VALUES (9);
INSERT INTO public.checkpoints VALUES ('00000000-0000-4000-8000-000000000001', '', '1f1e7057-8966-6a8e-8000-d6faeae857f6', NULL, NULL, '{"v": 4, "id": "1f1e7057-8966-6a8e-8000-d6faeae857f6", "ts": "2026-11-23T06:16:50.917202+00:00", "versions_seen": {"answer": {}}, "channel_values": {}, "channel_versions": {"messages": "00000000000000000000000000000001.0.3626826125528977"}, "updated_channels": null}', '{"step": 0, "source": "update", "parents": {}}');
INSERT INTO public.leases VALUES ('00000000-0000-4000-8000-000000000001', NULL, NULL, 0, NULL);
INSERT INTO public.leases VALUES ('00000000-0000-4000-8000-000000000002', NULL, NULL, 0, NULL);
INSERT INTO public.runs VALUES ('1f1e7057-8a1b-69aa-a900-fcd5cb58cde9', '00000000-0000-4000-8000-000000000002', '', '046b5dc7-2108-582c-9c6c-31d556d138f0', 'echo', 'pending', '{"graph_id": "echo", "created_by": "system", "assistant_id": "046b5dc7-2108-582c-9c6c-31d556d138f0"}', '{"input":{"messages":[{"role":"user","content":"go on"}]},"stream_mode":"values","stream_subgraphs":false,"stream_resumable":false,"config":{"configurable":{}},"checkpoint":{}}', 'enqueue', 0, '1', 0, NULL, NULL, '2026-11-23T06:16:50.991403+00:00', '2026-11-23T06:16:50.991403+00:00', '2026-11-23T06:16:50.991403+00:00');
INSERT INTO public.server_migrations VALUES (1);
INSERT INTO public.store VALUES ('notes', 'tide', '{"height": 13}', '2026-11-23 06:16:50.945182+00', '2026-11-23 06:16:50.945182+00', NULL, NULL);
INSERT INTO public.store_migrations VALUES (0);
INSERT INTO public.store_migrations VALUES (1);
INSERT INTO public.store_migrations VALUES (2);
INSERT INTO public.store_migrations VALUES (3);
INSERT INTO public.threads VALUES ('00000000-0000-4000-8000-000000000001', '', 'idle', '{"graph_id": "echo"}', '{}', '{"messages":[{"content":"hello","additional_kwargs":{},"response_metadata":{},"type":"human","name":null,"id":"638ace84-1906-4b46-a17d-d8eafc7a06b4"}],"steps":[]}', '{}', NULL, '2026-11-23T06:16:50.886503+00:00', '2026-11-23T06:16:50.928075+00:00', '2026-11-23T06:16:50.928041+00:00', NULL, NULL, NULL);
INSERT INTO public.threads VALUES ('00000000-0000-4000-8000-000000000002', '', 'busy', '{"graph_id": "echo", "assistant_id": "046b5dc7-2108-582c-9c6c-31d556d138f0"}', '{}', NULL, '{}', NULL, '2026-11-23T06:16:50.955367+00:00', '2026-11-23T06:16:50.996650+00:00', '2026-11-23T06:16:50.955367+00:00', NULL, NULL, NULL);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY public.assistant_versions
    ADD CONSTRAINT assistant_versions_pkey PRIMARY KEY (assistant_id, version);
ALTER TABLE ONLY public.assistants
    ADD CONSTRAINT assistants_pkey PRIMARY KEY (assistant_id);
ALTER TABLE ONLY public.checkpoint_blobs
    ADD CONSTRAINT checkpoint_blobs_pkey PRIMARY KEY (thread_id, checkpoint_ns, channel, version);
ALTER TABLE ONLY public.checkpoint_migrations
    ADD CONSTRAINT checkpoint_migrations_pkey PRIMARY KEY (v);
ALTER TABLE ONLY public.checkpoint_writes
    ADD CONSTRAINT checkpoint_writes_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id);
ALTER TABLE ONLY public.commands
    ADD CONSTRAINT commands_pkey PRIMARY KEY (run_id, call_id);
ALTER TABLE ONLY public.crons
    ADD CONSTRAINT crons_pkey PRIMARY KEY (cron_id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (thread_id);
ALTER TABLE ONLY public.quotas
    ADD CONSTRAINT quotas_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.run_events
    ADD CONSTRAINT run_events_pkey PRIMARY KEY (run_id, seq);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.server_migrations
    ADD CONSTRAINT server_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.store_migrations
    ADD CONSTRAINT store_migrations_pkey PRIMARY KEY (v);
ALTER TABLE ONLY public.store
    ADD CONSTRAINT store_pkey PRIMARY KEY (prefix, key);
ALTER TABLE ONLY public.threads
    ADD CONSTRAINT threads_pkey PRIMARY KEY (thread_id);
ALTER TABLE ONLY public.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (worker_id);
CREATE UNIQUE INDEX api_keys_by_digest ON public.api_keys USING btree (digest);
CREATE INDEX assistants_by_graph ON public.assistants USING btree (graph_id);
CREATE INDEX checkpoint_blobs_thread_id_idx ON public.checkpoint_blobs USING btree (thread_id);
CREATE INDEX checkpoint_writes_thread_id_idx ON public.checkpoint_writes USING btree (thread_id);
CREATE INDEX checkpoints_thread_id_idx ON public.checkpoints USING btree (thread_id);
CREATE INDEX crons_by_date ON public.crons USING btree (enabled, next_run_date);
CREATE INDEX idx_store_expires_at ON public.store USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX leases_by_removal ON public.leases USING btree (removed_at);
CREATE INDEX leases_by_worker ON public.leases USING btree (worker);
CREATE INDEX run_events_by_age ON public.run_events USING btree (created_at);
CREATE INDEX runs_by_age ON public.runs USING btree (updated_at);
CREATE INDEX runs_by_thread ON public.runs USING btree (thread_id, created_at);
CREATE INDEX runs_to_start ON public.runs USING btree (status, due_at);
CREATE INDEX store_prefix_idx ON public.store USING btree (prefix text_pattern_ops);
CREATE INDEX threads_by_age ON public.threads USING btree (updated_at);
CREATE INDEX threads_by_ttl ON public.threads USING btree (ttl_seconds);
CREATE INDEX threads_by_update ON public.threads USING btree (owner, updated_at);
