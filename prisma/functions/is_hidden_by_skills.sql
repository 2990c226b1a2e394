-- Tells whether a skill takes the place of a session's file: a file at or below /skills/<name>, or a file at /skills
-- itself.
--
-- Parameters
--   p_path, p_is_directory  the file
--   p_names                 the names of the skills that the session uses

CREATE OR REPLACE FUNCTION is_hidden_by_skills(p_path text, p_is_directory boolean, p_names text[])
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_path = '/skills' THEN NOT p_is_directory AND cardinality(p_names) > 0
    ELSE starts_with(p_path, '/skills/') AND split_part(p_path, '/', 3) = ANY (p_names)
  END
$$;
