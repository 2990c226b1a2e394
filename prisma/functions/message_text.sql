-- Returns the text of a message's event, of its parts that are texts.

CREATE OR REPLACE FUNCTION message_text(p_data jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(string_agg(part #>> '{}', ' '), '')
  FROM jsonb_path_query(p_data, '$.message.content[*] ? (@.type == "text").text') AS part
$$;
