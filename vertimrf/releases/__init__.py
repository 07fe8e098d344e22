"""Ways of publishing values across parties: a folder for each."""
