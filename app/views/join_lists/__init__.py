"""Where members look for other clusters, why two clusters do not merge, and the editor of join lists."""
