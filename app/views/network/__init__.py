"""The links between the members, and the faults in force. The editor plans partitions and cuts of links."""
