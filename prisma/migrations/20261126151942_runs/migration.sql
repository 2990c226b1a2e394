-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "input_preview" TEXT;

-- CreateTable
CREATE TABLE "session_texts" (
    "session_id" UUID NOT NULL,
    "sequence" INTEGER NOT NULL,
    "words" tsvector NOT NULL,

    CONSTRAINT "session_texts_pkey" PRIMARY KEY ("session_id","sequence")
);

-- CreateIndex
-- A message adds to a short list, and the message that fills it sorts it into the index.
CREATE INDEX "session_texts_words_idx" ON "session_texts" USING GIN ("words") WITH (gin_pending_list_limit = 512);

-- Copied from prisma/functions/index_message.sql, which has the manual.
CREATE OR REPLACE FUNCTION index_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO session_texts (session_id, sequence, words)
  SELECT s.id, NEW.sequence, search_words(s.organization_id, message_text(NEW.data), NEW.type = 'input.message')
  FROM sessions s WHERE s.id = NEW.session_id
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER messages_indexed AFTER INSERT ON events
FOR EACH ROW WHEN (NEW.type IN ('input.message', 'output.message.completed')) EXECUTE FUNCTION index_message();

-- Copied from prisma/functions/index_title.sql, which has the manual.
CREATE OR REPLACE FUNCTION index_title() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO session_texts (session_id, sequence, words)
  VALUES (NEW.id, 0, search_words(NEW.organization_id, coalesce(NEW.title, ''), false))
  ON CONFLICT (session_id, sequence) DO UPDATE SET words = excluded.words;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER titles_indexed AFTER INSERT OR UPDATE OF title ON sessions
FOR EACH ROW WHEN (NEW.title IS NOT NULL) EXECUTE FUNCTION index_title();

-- Copied from prisma/functions/message_text.sql, which has the manual.
CREATE OR REPLACE FUNCTION message_text(p_data jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(string_agg(part #>> '{}', ' '), '')
  FROM jsonb_path_query(p_data, '$.message.content[*] ? (@.type == "text").text') AS part
$$;

-- Copied from prisma/functions/search_words.sql, which has the manual.
CREATE OR REPLACE FUNCTION search_words(p_organization_id uuid, p_text text, p_is_input boolean)
RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$
  SELECT array_to_tsvector(
    CASE WHEN p_is_input THEN ARRAY['in ' || p_organization_id, 'input ' || p_organization_id]
      ELSE ARRAY['in ' || p_organization_id] END
  ) || to_tsvector('simple', left(p_text, 8192))
$$;
