"""JupyterLab as the course runs it; course.py points JUPYTER_CONFIG_PATH to this folder."""

from pathlib import Path

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Sends each message at once (TCP_NODELAY).

    Otherwise a small one waits up to 40 ms for the receipt of the last: a key press on a slider then takes 52 ms to a
    new picture, not 22 (tests/browser/latency.py).
    """

    def connect(self):
        self.websocket_handler.set_nodelay(True)
        return super().connect()


c.ServerApp.kernel_websocket_connection_class = PromptConnection  # noqa: F821  (Jupyter provides c)
c.ServerApp.root_dir = str(Path(__file__).resolve().parents[1])  # noqa: F821  (else ../assets is not served)
c.ServerApp.allow_root = True  # noqa: F821  (containers; it stays on loopback)
c.MappingKernelManager.transport_encryption = "auto"  # noqa: F821  (other users of a machine hear loopback)
c.LabApp.default_url = "/lab/tree/notebooks/00_start_here.ipynb"  # noqa: F821
c.LabApp.custom_css = True  # noqa: F821  (custom/custom.css beside this file)
c.ServerApp.tornado_settings = {"static_custom_path": [str(Path(__file__).resolve().parent / "custom")]}  # noqa: F821
c.LabApp.extension_manager = "readonly"  # noqa: F821  (no request to the outside)
c.LanguageServerManager.autodetect = False  # noqa: F821  (it would run npm)
