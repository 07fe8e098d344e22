"""Record and replay: what a party draws and releases of a file, and of the file with one person more or fewer."""
