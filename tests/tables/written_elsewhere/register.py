"""All tools of the matrix."""

from . import of_databases, of_programs, of_python, of_r

TOOLS = {
    tool.name: tool
    for module in (of_r, of_programs, of_databases, of_python)
    for tool in module.TOOLS
}
