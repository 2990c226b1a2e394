-- By hand: Prisma's schema language cannot express it.

-- An organization's turns that wait for their client. Other turns cost the index nothing.
CREATE INDEX turns_waiting ON turns (organization_id, id) WHERE status = 'waiting';
