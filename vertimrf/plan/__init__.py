"""Everything public that parties and server agree on before any data is touched."""
