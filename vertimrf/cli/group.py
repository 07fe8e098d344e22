"""The command group: errors as one sentence and exit code 2, --verbose anywhere."""

from __future__ import annotations

import errno
import logging
import time
from typing import Any

import click

from ..errors import VertiMRFError

__all__ = ["main"]

# What a file system says that will not be written to: nothing of the program's.
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
# What it says of something else than a file, or a folder, where one belongs.
UNWRITABLE |= {errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR}


class _Told(logging.Handler):
    """The library's log as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            click.echo(f"Warning: {record.getMessage()}", err=True)
        else:
            click.echo(
                f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {record.getMessage()}",
                err=True,
            )


class Group(click.Group):
    """Turns the library's typed errors, and what a disk refuses, into one sentence and exit code 2; takes --verbose anywhere."""

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
    "--verbose", is_flag=True, help="Steps and times as lines on standard error, in a pipe too."
)
def main(verbose: bool) -> None:
    """Differentially private synthesis of a table whose columns are held by different parties."""
    log = logging.getLogger("vertimrf")
    log.setLevel(logging.INFO if verbose else logging.WARNING)
    if not any(isinstance(handler, _Told) for handler in log.handlers):
        log.addHandler(_Told())
