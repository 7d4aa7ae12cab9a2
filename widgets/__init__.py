"""The widgets paint view models of the picture in a terminal. They know nothing of clusters, files or sockets."""
