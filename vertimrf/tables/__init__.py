"""Tables: record ids and integer codes out of files and data frames. Nothing at the server imports this."""
