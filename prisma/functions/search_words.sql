-- Returns the words of a text for session_texts, with marks that tell whose text it is.
--
-- The parser makes no word with a space, so a mark is never part of a text or of a search. `in <organization>` is in
-- all texts of an organization, `input <organization>` in its users' messages: a search ANDs one of them, and
-- so the index skips other organizations' texts.
--
-- Only the first 8,192 characters are searched. Postgres leaves out words of more than 2,046 bytes.

CREATE OR REPLACE FUNCTION search_words(p_organization_id uuid, p_text text, p_is_input boolean)
RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$
  SELECT array_to_tsvector(
    CASE WHEN p_is_input THEN ARRAY['in ' || p_organization_id, 'input ' || p_organization_id]
      ELSE ARRAY['in ' || p_organization_id] END
  ) || to_tsvector('simple', left(p_text, 8192))
$$;
