"""A cluster on this machine: it starts, stops, kills and pauses its members, carries out commands, and records what happens."""
