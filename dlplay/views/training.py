"""The live view of a training: curves, and a look inside every layer."""

import json
import threading
import time
from dataclasses import dataclass
from typing import Any

import anywidget
import traitlets

from dlplay.runs.snapshot import Snapshot
from dlplay.views import web
from dlplay.views.frame import Composer, Header
from dlplay.views.pacing import Pacer
from dlplay.views.palette import PALETTE


@dataclass(frozen=True)
class Painted:
    """What a browser has reported last.

    Attributes
    ----------
    frame : int
        The number of the newest frame that it has painted; 0 before the first.
    frames : int
        How many frames that view has painted since it was opened.
    latency : float or None
        Mean seconds from kernel to paint since the report before; only of use where kernel
        and browser have the same clock, that is, on one machine.
    """

    frame: int = 0
    frames: int = 0
    latency: float | None = None


class TrainingView(anywidget.AnyWidget):
    """Draws a training's snapshots in Jupyter, live.

    The state in the kernel is always complete, so a page that is reopened shows the newest
    frame at once, and the same view may be displayed in several places.

    Parameters
    ----------
    rate : float
        Frames a second, at most.
    projector : bool
        Draw text, lines and marks half as big again.
    log_loss : bool
        Draw the loss on a logarithmic axis.
    layers : bool
        Show the histograms of the layers.

    Attributes
    ----------
    header : dict
        The newest frame without its arrays (see ``dlplay.views.frame``).
    """

    _esm = web.module("training.js")
    _css = web.style("training.css")
    header: Header

    frame = traitlets.Dict().tag(sync=True)
    palette = traitlets.Dict(PALETTE).tag(sync=True)
    projector = traitlets.Bool(False).tag(sync=True)
    log_loss = traitlets.Bool(False).tag(sync=True)
    layers = traitlets.Bool(True).tag(sync=True)

    def __init__(self, rate: float = 20.0, **kwargs: Any) -> None:
        self._lock = threading.RLock()
        self._pacer = Pacer(rate)
        self._composer = Composer()
        self._painted = Painted()
        super().__init__(frame=self._frame(Snapshot(), 0), **kwargs)
        self.on_msg(self._take_message)

    def due(self) -> bool:
        """Say whether it is time for another frame: ask before making a costly snapshot."""
        return self._pacer.due()

    def show(self, snapshot: Snapshot, force: bool = False) -> None:
        """Send the snapshot to the page, from any thread.

        Parameters
        ----------
        snapshot : Snapshot
            The newest state of the run.
        force : bool
            Send it also where no frame is due. A snapshot whose state is new is always sent;
            others may be dropped, so the last of a run must be forced.
        """
        with self._lock:
            new_state = snapshot.state != self.header["state"]
            if force or new_state or self._pacer.due():
                self.frame = self._frame(snapshot, self._pacer.send())

    @property
    def painted(self) -> Painted:
        """What the browser has painted, as it reported last."""
        return self._painted

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take a change from the page, never in the middle of sending a frame."""
        with self._lock:
            super().set_state(sync_data)

    def _frame(self, snapshot: Snapshot, number: int) -> dict[str, Any]:
        header, data = self._composer.compose(snapshot)
        header.update(frame=number, sent=time.time())
        self.header = header
        # As text: ipywidgets would search every value of a nested header for buffers.
        return {"header": json.dumps(header, allow_nan=False), "data": data}

    def _take_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if not isinstance(content, dict) or content.get("kind") != "painted":
            return
        with self._lock:
            self._pacer.paint(content["frame"])
            self._painted = Painted(content["frame"], content["frames"], content["latency"])

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is not None:
            bundle[0]["text/plain"] = self.header["words"]
        return bundle
