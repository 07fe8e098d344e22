"""Code that runs at the server, which sees messages and never a table."""
