"""Sketches: their public parameters, the party's encoder, the server's estimator."""
