"""Tables of counts across two parties, computed under encryption."""
