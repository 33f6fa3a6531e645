"""A stand-in for the hub's HTTP interface on loopback: repositories in memory, uploads by commit and by LFS."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0" * 40


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
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else b""
                if self.headers.get("Transfer-Encoding") == "chunked":
                    body = self._chunked()
                status, headers, data = hub.answer(self.command, self.path.partition("?")[0], body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def _chunked(self) -> bytes:
                found = b""
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    found += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return found

            do_GET = do_HEAD = do_POST = do_PUT = handle_any

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "LocalHub":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body) for one request."""
        if path == "/api/repos/create":
            about = json.loads(body)
            name = f"{about.get('organization') or 'me'}/{about['name']}"
            self.files.setdefault(name, {})
            return _json({"url": f"{self.url}/{name}", "name": name})
        if path == "/api/validate-yaml":
            return _json({"errors": [], "warnings": []})
        if found := re.fullmatch(r"/api/models/(.+?)/preupload/main", path):
            files = json.loads(body)["files"]
            large = [file["path"].endswith(".safetensors") for file in files]
            return _json(
                {
                    "files": [
                        {
                            "path": file["path"],
                            "uploadMode": "lfs" if lfs else "regular",
                            "shouldIgnore": False,
                        }
                        for file, lfs in zip(files, large, strict=True)
                    ]
                }
            )
        if path.endswith(".git/info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            actions = [{"upload": {"href": f"{self.url}/lfs/{one['oid']}"}} for one in objects]
            return _json(
                {
                    "transfer": "basic",
                    "objects": [
                        {"oid": one["oid"], "size": one["size"], "actions": action}
                        for one, action in zip(objects, actions, strict=True)
                    ],
                }
            )
        if path.startswith("/lfs/"):
            assert hashlib.sha256(body).hexdigest() == path.rpartition("/")[2]
            self.large[path.rpartition("/")[2]] = body
            return 200, {}, b""
        if found := re.fullmatch(r"/api/models/(.+?)/commit/main", path):
            self._commit(found[1], body)
            return _json({"commitUrl": f"{self.url}/{found[1]}/commit/{COMMIT}", "commitOid": COMMIT})
        if found := re.fullmatch(r"/api/models/(.+?)/tree/.+", path):
            files = self.files.get(found[1], {})
            return _json(
                [
                    {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for name, data in files.items()
                ]
            )
        if found := re.fullmatch(r"/api/models/(.+?)(/revision/.+)?", path):
            files = self.files.get(found[1])
            if files is None:
                return _missing("RepoNotFound")
            return _json(
                {
                    "id": found[1],
                    "sha": COMMIT,
                    "siblings": [{"rfilename": name} for name in files],
                    "tags": [],
                }
            )
        if found := re.fullmatch(r"/(.+?)/resolve/[^/]+/(.+)", path):
            files = self.files.get(found[1])
            if files is None or found[2] not in files:
                return _missing("RepoNotFound" if files is None else "EntryNotFound")
            tag = hashlib.sha256(files[found[2]]).hexdigest()
            return 200, {"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"'}, files[found[2]]
        return 404, {}, b'{"error": "not part of the stand-in"}'

    def _commit(self, name: str, body: bytes) -> None:
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                self.files[name][value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                self.files[name][value["path"]] = self.large[value["oid"]]


def _json(value: object) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _missing(code: str) -> tuple[int, dict[str, str], bytes]:
    return 404, {"X-Error-Code": code}, b"{}"
