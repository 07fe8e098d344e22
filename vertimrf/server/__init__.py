"""What runs at the server that nobody trusts with data: messages in, a model and synthetic rows
out.
"""
