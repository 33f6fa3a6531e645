"""A stand-in for the hub's HTTP interface on loopback: repositories in memory, uploads by commit and by LFS."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0" * 40
Answer = tuple[int, dict[str, str], bytes]  # status, headers, body


class LocalHub:
    """`with LocalHub() as hub`: hub.url is its address, hub.files[repository] what was uploaded."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.large: dict[str, bytes] = {}  # LFS objects by sha256
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, data = hub.answer(self.path.partition("?")[0], body)
                self.send_response(status)
                for name, value in (headers | {"Content-Length": str(len(data))}).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_HEAD = do_POST = do_PUT = handle_any

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "LocalHub":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: bytes) -> Answer:
        if path == "/api/repos/create":
            about = json.loads(body)
            name = f"{about.get('organization') or 'me'}/{about['name']}"
            self.files.setdefault(name, {})
            return _json({"url": f"{self.url}/{name}", "name": name})
        if path == "/api/validate-yaml":
            return _json({"errors": [], "warnings": []})
        if path.endswith("/preupload/main"):
            return _json({"files": [_upload(file["path"]) for file in json.loads(body)["files"]]})
        if path.endswith(".git/info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            for each in objects:
                each["actions"] = {"upload": {"href": f"{self.url}/lfs/{each['oid']}"}}
            return _json({"transfer": "basic", "objects": objects})
        if path.startswith("/lfs/"):
            assert hashlib.sha256(body).hexdigest() == path.rpartition("/")[2]
            self.large[path.rpartition("/")[2]] = body
            return 200, {}, b""
        if found := re.fullmatch(r"/api/models/(.+?)/commit/main", path):
            self._commit(found[1], body)
            return _json({"commitUrl": f"{self.url}/{found[1]}/commit/{COMMIT}", "commitOid": COMMIT})
        if found := re.fullmatch(r"/(.+?)/resolve/[^/]+/(.+)", path):
            return self._file(*found.groups())
        if found := re.fullmatch(r"/api/models/(.+?)/tree/.+", path):
            return _json([_entry(*file) for file in self.files.get(found[1], {}).items()])
        found = re.fullmatch(r"/api/models/(.+?)(/revision/.+)?", path)
        if found is None or found[1] not in self.files:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        names = [{"rfilename": name} for name in self.files[found[1]]]
        return _json({"id": found[1], "sha": COMMIT, "siblings": names, "tags": []})

    def _file(self, repository: str, name: str) -> Answer:
        files = self.files.get(repository)
        if files is None or name not in files:
            code = "RepoNotFound" if files is None else "EntryNotFound"
            return 404, {"X-Error-Code": code}, b"{}"
        tag = hashlib.sha256(files[name]).hexdigest()
        return 200, {"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"'}, files[name]

    def _commit(self, name: str, body: bytes) -> None:
        for entry in map(json.loads, body.splitlines()):
            value = entry["value"]
            if entry["key"] == "file":
                self.files[name][value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                self.files[name][value["path"]] = self.large[value["oid"]]


def _upload(path: str) -> dict[str, object]:
    mode = "lfs" if path.endswith(".safetensors") else "regular"
    return {"path": path, "uploadMode": mode, "shouldIgnore": False}


def _entry(path: str, data: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}


def _json(value: object) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()
