-- In earlier releases a client's tool silently replaced a capability's tool of the same name. Now it must say so.
DO $$
DECLARE
  v_table text;
  v_takes text := $condition$
    tool ->> 'type' = 'client_side' AND tool -> 'replaces' IS NULL AND (tool ->> 'name' LIKE 'mcp\_%' OR tool ->> 'name' IN (
      'activate_skill', 'add', 'bash', 'create_schedule', 'delete_file', 'delete_schedule', 'divide', 'edit_file',
      'get_current_time', 'get_forecast', 'get_weather', 'grep_files', 'kv_store', 'list_directory', 'list_schedules',
      'list_skills', 'multiply', 'read_file', 'secret_store', 'sql_execute', 'sql_query', 'sql_schema', 'stat_file',
      'subtract', 'web_fetch', 'write_file', 'write_todos'))
  $condition$;
BEGIN
  FOREACH v_table IN ARRAY ARRAY['agents', 'sessions'] LOOP
    -- Changed as text, to keep the order of a schema's keys.
    EXECUTE format($update$
      UPDATE %1$I SET tools = (
        SELECT json_agg(
          CASE WHEN %2$s THEN regexp_replace(tool::text, '\}\s*$', ',"replaces":true}')::json ELSE tool END ORDER BY place)
        FROM json_array_elements(tools) WITH ORDINALITY AS listed (tool, place))
      WHERE tools::text LIKE '%%client_side%%' AND EXISTS (SELECT FROM json_array_elements(tools) AS tool WHERE %2$s)
    $update$, v_table, v_takes);
  END LOOP;
END $$;
