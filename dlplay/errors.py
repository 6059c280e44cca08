"""What dlplay raises: each message is one sentence that names what was wrong and what to do."""


class DlplayError(Exception):
    """The base of every error that dlplay raises on purpose."""


class SettingError(DlplayError, ValueError):
    """A setting that cannot be, or settings that cannot go together."""


class DataError(DlplayError, OSError):
    """Data that cannot be found, downloaded or trusted."""


class MissingFrameworkError(DlplayError, ImportError):
    """A framework that is needed and not installed."""


class ModelError(DlplayError, ValueError):
    """A model, or a pair of models, that cannot be used as asked."""


class RunError(DlplayError, RuntimeError):
    """Something asked of a run in a state in which it cannot be done."""
