"""One conversation for each role: a folder whose files are its whole state, taken as far as it goes by every call."""
