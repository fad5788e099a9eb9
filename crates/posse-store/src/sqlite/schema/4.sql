-- What was agreed when a sub-agent was started, as JSON; empty where an older posse started it. types: a
-- fingerprint of the types of agents that the model has been told of.
ALTER TABLE agent ADD COLUMN terms TEXT;
ALTER TABLE agent ADD COLUMN types INTEGER;
