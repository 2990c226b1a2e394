-- Each statement by itself: the tables may be large, and sessions go on while their indexes are built.

DROP INDEX CONCURRENTLY IF EXISTS "sessions_tree";

-- Sessions of a tree, and the forks among all sessions.
CREATE INDEX CONCURRENTLY "sessions_tree" ON sessions (organization_id, tree_id, created_at, id) WHERE tree_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS "sessions_with_snapshots";

-- Sessions whose old snapshots are to be deleted.
CREATE INDEX CONCURRENTLY "sessions_with_snapshots" ON sessions (id) WHERE snapshots_since IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS "session_file_totals_space";

-- Sessions that share their files' contents.
CREATE INDEX CONCURRENTLY "session_file_totals_space" ON session_file_totals (space_id) WHERE space_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS "turns_copies";

-- Turns that forks have copied, which counts of turns leave out.
CREATE INDEX CONCURRENTLY "turns_copies" ON turns (organization_id, status, created_at) WHERE is_copy;
