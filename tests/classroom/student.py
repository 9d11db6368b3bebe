"""One student of the simulated class, as the hub and JupyterLab see their browser: HTTP and a websocket."""

import asyncio
import json
import random
import re
import time
from dataclasses import dataclass, field

import httpx
from jupyter_client.session import Session
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClosedError, websocket_connect

LIMIT = 300  # seconds, for one wait
ASKED = (
    "api/kernelspecs",
    "api/terminals",
    "api/contents",
    "lab/api/settings",
    "lab/api/workspaces/default",
    "lab/api/translations/default",
)  # by JupyterLab's page, when it opens
OUTPUTS = {"stream", "display_data", "execute_result", "error", "execute_reply"}
NOTE = "\nmy own note"


@dataclass
class Report:
    failures: list[str] = field(default_factory=list)
    cells: int = 0  # that ran to their end
    reconnected: int = 0  # times that channels were found closed
    starts: list[float] = field(default_factory=list)  # seconds from the click to JupyterLab's page
    first_cells: list[float] = field(default_factory=list)  # seconds to the first output; imports torch
    other_cells: list[float] = field(default_factory=list)
    peak: dict = field(default_factory=dict)  # student -> MB (PSS, USS); "": the hub itself
    end: dict = field(default_factory=dict)


class Student:
    """One browser: signs in, opens the lesson in JupyterLab, runs it."""

    def __init__(self, name: str, client: httpx.AsyncClient, think: float, seed: int, report: Report):
        self.name, self.client, self.mean, self.report = name, client, think, report
        self.base, self.session, self.doing, self.channels = f"/user/{name}/", Session(), "", None
        self.random = random.Random(f"{seed} {name}")

    async def attend(self, password: str, path: str, comes_back: bool) -> None:
        """The whole class for this student; with comes_back the server is stopped and started after the lesson."""
        try:
            await self.sign_in(password)
            await self.start_server()
            notebook, cells = await self.open(path)
            await self.run(cells[: len(cells) // 2])
            self.doing = "saving"
            notebook["cells"][0]["source"] += NOTE
            await self.ask("PUT", f"{self.base}api/contents/{path}", json={"type": "notebook", "content": notebook})
            self.doing = "restarting the kernel"
            await self.ask("POST", f"{self.base}api/kernels/{self.kernel}/restart")
            await self.connect()
            await self.run(cells)
            if comes_back:
                self.doing = "stopping the server"
                await self.ask("DELETE", f"/hub/api/users/{self.name}/server")
                await self.start_server()
                notebook, cells = await self.open(path)
                if not notebook["cells"][0]["source"].endswith(NOTE):
                    raise RuntimeError("what was saved is gone")
                await self.run(cells[:1])
        except Exception as error:
            self.report.failures.append(f"{self.name}, {self.doing}: {type(error).__name__}: {error}")

    async def ask(self, method: str, path: str, **request):
        """One request of JupyterLab's or the hub's page, with that page's XSRF token."""
        token = next(c.value for c in self.client.cookies.jar if c.name == "_xsrf" and path.startswith(c.path))
        response = await self.client.request(method, path, headers={"X-XSRFToken": token}, **request)
        response.raise_for_status()
        return response.json() if response.content else None

    async def sign_in(self, password: str) -> None:
        self.doing = "signing in"
        page = await self.client.get("/hub/login")
        token = re.search('name="_xsrf" value="(.+?)"', page.text)[1]
        form = {"username": self.name, "password": password, "_xsrf": token}
        page = await self.client.post("/hub/login?next=/hub/home", data=form)
        if page.url.path != "/hub/home":
            raise RuntimeError(f"the hub answers {page.status_code} at {page.url}")

    async def start_server(self) -> None:
        """Press Start, wait as the page does until JupyterLab is there, and ask what its page asks."""
        self.doing, begun = "starting the server", time.perf_counter()
        while not (page := await self.client.get("/hub/spawn")).url.path.startswith(self.base):
            if page.status_code not in (200, 429) or time.perf_counter() - begun > LIMIT:  # 429: too many at once
                raise RuntimeError(f"the hub answers {page.status_code} at {page.url}")
            await asyncio.sleep(int(page.headers.get("Retry-After", 1)))
        page.raise_for_status()
        for path in ASKED:
            await self.ask("GET", self.base + path)
        self.report.starts.append(time.perf_counter() - begun)

    async def open(self, path: str) -> tuple[dict, list[str]]:
        """The notebook and its code cells, with a kernel and its channels open."""
        self.doing = "opening the lesson"
        notebook = (await self.ask("GET", f"{self.base}api/contents/{path}"))["content"]
        request = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        self.kernel = (await self.ask("POST", f"{self.base}api/sessions", json=request))["kernel"]["id"]
        await self.connect()
        return notebook, [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]

    async def connect(self) -> None:
        request = self.client.build_request(
            "GET", f"{self.base}api/kernels/{self.kernel}/channels?session_id={self.session.session}"
        )
        url = str(request.url).replace("http", "ws", 1)
        self.close()
        self.channels = await websocket_connect(
            HTTPRequest(url, headers={"Cookie": request.headers["Cookie"]}, request_timeout=LIMIT)
        )

    def close(self) -> None:
        if self.channels:
            self.channels.close()

    async def send(self, message: str) -> None:
        """As JupyterLab: if the server has closed the channels meanwhile, open them anew and try again, seven times."""
        for _ in range(7):
            try:
                return await self.channels.write_message(message)
            except WebSocketClosedError:
                self.report.reconnected += 1
                await self.connect()
        raise RuntimeError("the kernel's channels do not stay open")

    async def run(self, cells: list[str]) -> None:
        for number, code in enumerate(cells):
            await asyncio.sleep(self.random.uniform(0, 2 * self.mean))
            self.doing = f"code cell {number}"
            seconds = await asyncio.wait_for(self.execute(code), LIMIT)
            (self.report.other_cells if number else self.report.first_cells).append(seconds)
            self.report.cells += 1

    async def execute(self, code: str) -> float:
        """Run a cell to its end; seconds to the first output, or to the reply if there is none. An error raises."""
        message = self.session.msg(
            "execute_request",
            {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True},
        )
        sent, first, awaited = time.perf_counter(), None, {"execute_reply", "idle"}
        await self.send(json.dumps(message | {"channel": "shell"}, default=str))
        while awaited:
            answer = await self.channels.read_message()
            if answer is None:
                raise RuntimeError("the kernel's channels are closed")
            answer = json.loads(answer) if isinstance(answer, str) else {}  # bytes: a widget's buffers
            if answer.get("parent_header", {}).get("msg_id") != message["header"]["msg_id"]:
                continue
            kind, content = answer["msg_type"], answer["content"]
            if kind == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}")
            if kind in OUTPUTS and first is None:
                first = time.perf_counter() - sent
            awaited -= {kind, content.get("execution_state")}
        return first
