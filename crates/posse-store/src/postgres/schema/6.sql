-- How strongly a call's command is held. Words as in SQLite's schema.
ALTER TABLE call ADD COLUMN tier text;
