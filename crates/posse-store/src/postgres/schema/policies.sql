-- Tenants: each row belongs to the role that wrote it, and no other role sees or touches it, the owner of the tables
-- included. Whoever may connect to the database may use the tables, and so is a tenant of its own.
DO $$
DECLARE _table text;
BEGIN
    FOR _table IN SELECT tablename FROM pg_tables WHERE schemaname = 'posse' AND tablename <> 'version' LOOP
        EXECUTE format('ALTER TABLE posse.%I ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT CURRENT_USER', _table);
        EXECUTE format('ALTER TABLE posse.%I ENABLE ROW LEVEL SECURITY', _table);
        EXECUTE format('ALTER TABLE posse.%I FORCE ROW LEVEL SECURITY', _table);
        EXECUTE format('CREATE POLICY tenant ON posse.%I USING (tenant = CURRENT_USER) WITH CHECK (tenant = CURRENT_USER)', _table);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON posse.%I TO PUBLIC', _table);
    END LOOP;
END $$;
GRANT USAGE ON SCHEMA posse TO PUBLIC;
GRANT SELECT ON posse.version TO PUBLIC;
