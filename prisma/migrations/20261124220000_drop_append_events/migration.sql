-- record_events replaced append_events, and no release called it.
DROP ROUTINE append_events(uuid,uuid,text,bigint,jsonb);
