-- Keeps the audit log append-only: entries are deleted by retention, and with their organization, but never changed.

CREATE OR REPLACE FUNCTION refuse_audit_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'entries of the audit log do not change';
END $$;

CREATE OR REPLACE TRIGGER refuse_audit_update BEFORE UPDATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_update();
