-- Makes the title of a session searchable. A trigger function, in the transaction that sets the title.

CREATE OR REPLACE FUNCTION index_title() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO session_texts (session_id, sequence, words)
  VALUES (NEW.id, 0, search_words(NEW.organization_id, coalesce(NEW.title, ''), false))
  ON CONFLICT (session_id, sequence) DO UPDATE SET words = excluded.words;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER titles_indexed AFTER INSERT OR UPDATE OF title ON sessions
FOR EACH ROW WHEN (NEW.title IS NOT NULL) EXECUTE FUNCTION index_title();
