"""The command group.

An error is one sentence with exit code 2, and --verbose may stand anywhere.
"""

from __future__ import annotations

import errno
import logging
import time
from typing import Any

import click

from ..errors import VertiMRFError

# Errors of the file system that are no errors of this program.
UNWRITABLE = {
    errno.EACCES,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.ENOENT,
    errno.ENOSPC,
    errno.EPERM,
    errno.EROFS,
}
# Errors about a file in the place of a folder, and the like.
UNWRITABLE |= {errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR}


class _Printer(logging.Handler):
    """Prints the library's log on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            click.echo(f"Warning: {record.getMessage()}", err=True)
        else:
            click.echo(
                f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {record.getMessage()}",
                err=True,
            )


class Group(click.Group):
    """A group whose errors are one sentence with exit code 2, and that takes --verbose anywhere."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--verbose" in args:
            args = ["--verbose", *(arg for arg in args if arg != "--verbose")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VertiMRFError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(2)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            where = "" if error.filename is None else f" {error.filename}"
            click.echo(f"Error: Cannot write or read{where}: {error.strerror}.", err=True)
            ctx.exit(2)


@click.group(
    cls=Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="vertimrf")
@click.option(
    "--verbose", is_flag=True, help="Print steps and times on standard error, also in a pipe."
)
def main(verbose: bool) -> None:
    """Differentially private synthesis of a table whose columns are held by different parties."""
    log = logging.getLogger("vertimrf")
    log.setLevel(logging.INFO if verbose else logging.WARNING)
    if not any(isinstance(handler, _Printer) for handler in log.handlers):
        log.addHandler(_Printer())
