"""The demo: a real vertical case on data that a package ships."""
