"""Runs of the protocol, one folder per role. Its files are the whole state of the role."""
