"""The Markov random field: fit it to measurements, compute its marginals, draw rows."""
