"""The list of demos, and the lesson on the cluster of one. Its tutor stands beside the beliefs of all members."""
