-- Definitions of tools that an entry brings: a row of preamble.
ALTER TABLE entry ADD COLUMN loaded uuid;
