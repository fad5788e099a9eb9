-- How strongly a call's command is held. Words as in 1.sql.

-- tier: A, A-, B, or C for not at all; NULL if it runs no command.
ALTER TABLE call ADD COLUMN tier TEXT;
