-- record_events has replaced it, and no release has called it.
DROP ROUTINE append_events(uuid,uuid,text,bigint,jsonb);
