"""The links between the members, the faults in force, and the editor of partitions and cuts."""
