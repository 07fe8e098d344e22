"""A run as one page that people can read."""
