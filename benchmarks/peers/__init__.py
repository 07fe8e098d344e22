"""Central mechanisms of others, each in an environment of its own. The runner of experiments has them as methods."""
