"""Turns what went wrong in a download into one sentence that says what to do."""

import errno
from collections.abc import Iterator
from pathlib import Path
from urllib.error import ContentTooShortError

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}


def explain(error: BaseException, name: str, folder: Path, disk: int) -> str:
    """The sentence for an error of a downloader.

    Parameters
    ----------
    error
        What torchvision, Keras, NumPy or the operating system raised.
    name, folder, disk
        The data set, where it is kept, and the megabytes that it needs there at most.
    """
    causes = list(_causes(error))
    reason = _reason(causes[-1])
    if any(getattr(cause, "errno", None) in _FULL for cause in causes):
        return (
            f"The disk is full, so {name} could not be kept in {folder} and what was written of"
            f" it is removed: free {disk} MB and load it again, or set the environment variable"
            " DLPLAY_CACHE to a folder with more room."
        )
    if any(_is_closed(cause) for cause in causes):
        return (
            f"{name} cannot be kept in {folder}, which cannot be used ({reason}): set the"
            " environment variable DLPLAY_CACHE to a folder that you can write."
        )
    if "corrupt" in str(error) or isinstance(causes[-1], ContentTooShortError):
        return (
            f"{name} arrived damaged or incomplete and was thrown away: load it again; where that"
            " does not help, a proxy or a Wi-Fi's login page stands between you and the server."
        )
    return (
        f"{name} could not be downloaded ({reason}): check the connection to the internet and"
        " load it again, or use digits, spirals or moons, which need no network."
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_closed(cause: BaseException) -> bool:
    """A folder or file that the system keeps us from; a socket's error names no file."""
    if not isinstance(cause, OSError) or cause.filename is None:
        return False
    return cause.errno in _CLOSED


def _reason(error: BaseException) -> str:
    """The last line of the message: torchvision's first ones list the mirrors that it tried."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).strip("<>. ")
