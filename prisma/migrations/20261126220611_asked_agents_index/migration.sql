-- Each statement by itself: the table may be large, and turns go on while its indexes are built.

DROP INDEX CONCURRENTLY IF EXISTS "turns_ancestors";

-- Turns below a turn: their sums, and the sessions in which agents were asked.
CREATE INDEX CONCURRENTLY "turns_ancestors" ON turns USING gin (ancestors) WHERE ancestors IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS "turns_unfinished_children";

-- Turns whose caller may have ended before them.
CREATE INDEX CONCURRENTLY "turns_unfinished_children" ON turns (id) WHERE ancestors IS NOT NULL AND finished_at IS NULL;
