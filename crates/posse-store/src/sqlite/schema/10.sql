-- Definitions of tools that an entry brings. Words as in 1.sql.

-- loaded: the definitions: a row of preamble; NULL if it brings none.
ALTER TABLE entry ADD COLUMN loaded BLOB;
