"""The links between the members, the faults in force, and an editor that plans further ones."""
