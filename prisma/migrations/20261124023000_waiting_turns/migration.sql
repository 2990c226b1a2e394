-- By hand: what Prisma's schema language has no words for.

-- An organization's turns that wait for their client. Those that never wait cost it nothing.
CREATE INDEX turns_waiting ON turns (organization_id, id) WHERE status = 'waiting';
