"""A name node and a data node of Hadoop's file system by WebHDFS, as it is documented: two ports, and bodies of files at
the second one alone. They keep files as server.py does, under "/folder/name"; folders are there by themselves."""
import functools
import json
import re
import urllib.parse
import zlib

import server

CHANGED_MS = 1700000000123
STATUSES = {"FileNotFoundException": 404, "SecurityException": 401, "IllegalArgumentException": 400}


@functools.lru_cache(maxsize=64)
def id_of(data):
    """Of what is asked about again and again it is found once."""
    return zlib.crc32(data)


class Refused(Exception):
    pass


class Handler(server.Handler):
    """server.token: what is no query's `delegation` is refused; server.takes_options: a rename may replace, as a name
    node's; HttpFS takes none; server.has_batches: of lists."""

    def refuse(self, status, code, message):
        code = self.server.exception if status == 403 else code
        text = {"RemoteException": {"exception": code, "javaClassName": f"java.io.{code}", "message": message}}
        self.send(status, json.dumps(text).encode(), {"Content-Type": "application/json"}, None)

    def answer(self, body, fault):
        path, _, text = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        name = urllib.parse.unquote(path.removeprefix("/webhdfs/v1"))
        if not path.startswith("/webhdfs/v1/"):
            return 404, b"<html>no such page</html>", {}
        try:
            self.check(query, body)
            return getattr(self, query["op"].lower())(name.rstrip("/"), query, body, fault)
        except Refused as refused:
            code, message = refused.args
            said = {"RemoteException": {"exception": code, "javaClassName": f"java.io.{code}",
                                        "message": message + "\n\tat org.apache.hadoop"}}
            return STATUSES.get(code, 403), json.dumps(said).encode(), {}

    def check(self, query, body):
        if self.server.token is None and query.get("user.name") != self.server.user:
            raise Refused("SecurityException", f"{query.get('user.name')} is not {self.server.user}")
        if self.server.token is not None and query.get("delegation") != self.server.token:
            raise Refused("SecurityException", f"no such token: {query.get('delegation')}")
        if self.server.name_node is None and body:
            raise Refused("IllegalArgumentException", "a body for a name node")

    def redirected(self):
        """None at the data node."""
        if self.server.name_node:
            return None
        return 307, b"", {"Location": self.server.leads_to + self.path + "&namenoderpcaddress=here:8020"}

    @staticmethod
    def said(text):
        return 200, json.dumps(text).encode(), {}

    def status(self, name, suffix=""):
        data = self.server.files.get(name)
        if data is None and name not in self.server.folders:
            raise Refused("FileNotFoundException", f"File does not exist: {name}")
        return {"pathSuffix": suffix, "type": "DIRECTORY" if data is None else "FILE", "length": len(data or b""),
                "modificationTime": CHANGED_MS, "fileId": id_of(data or b"")}

    # ---- operations ----

    def getfilestatus(self, name, *_):
        return self.said({"FileStatus": self.status(name)})

    def children(self, name):
        self.status(name)
        inside = {path[len(name) + 1:] for path in [*self.server.files, *self.server.folders]
                  if path.startswith(name + "/")}
        return [self.status(f"{name}/{child}", child) for child in sorted(inside) if "/" not in child]

    def liststatus(self, name, *_):
        return self.said({"FileStatuses": {"FileStatus": self.children(name)}})

    def liststatus_batch(self, name, query, *_):
        if not self.server.has_batches:
            raise Refused("IllegalArgumentException", "Invalid value for webhdfs parameter \"op\"")
        if self.server.list_answer is not None:
            return 200, self.server.list_answer, {}
        left = [child for child in self.children(name) if child["pathSuffix"] > query.get("startAfter", "")]
        return self.said({"DirectoryListing": {
            "partialListing": {"FileStatuses": {"FileStatus": left[:server.PAGE_KEYS]}},
            "remainingEntries": max(len(left) - server.PAGE_KEYS, 0)}})

    def open(self, name, query, *_):
        self.status(name)
        first = int(query["offset"])
        return self.redirected() or (200, self.server.files[name][first:first + int(query["length"])], {})

    def create(self, name, _query, body, fault):
        if self.server.name_node is None:
            return self.redirected()
        self.server.files[name] = body[:len(body) // 2] if fault == "half" else body
        self.server.make_parents(name)
        return 201, b"", {"Location": "hdfs://here:8020" + name}

    def append(self, name, _query, body, fault):
        self.status(name)
        if self.server.name_node is None:
            return self.redirected()
        self.server.files[name] += body[:len(body) // 2] if fault == "half" else body
        return 200, b"", {}

    def rename(self, name, query, *_):
        files, target = self.server.files, query["destination"]
        over = self.server.takes_options and query.get("renameoptions") == "OVERWRITE"
        if over:
            self.status(name)
        elif name not in files or target in files:
            return self.said({"boolean": False})
        files[target] = files.pop(name)
        return (200, b"", {}) if over else self.said({"boolean": True})

    def delete(self, name, *_):
        is_there = self.server.files.pop(name, None) is not None
        if not is_there and name in self.server.folders:
            if self.children(name):
                raise Refused("PathIsNotEmptyDirectoryException", f"`{name} is non empty': Directory is not empty")
            self.server.folders.remove(name)
            is_there = True
        return self.said({"boolean": is_there})

    def send(self, status, body, headers, fault):
        super().send(status, body, headers, "drop after" if fault == "half" else fault)
        self.close_connection |= fault == "half"


class DataNode(server.Server):
    """What it has and is asked, and how it fails, is its name node's."""

    def __init__(self, name_node, handler):
        super().__init__(handler=handler)
        for name in ("files", "asked", "fault", "lock", "token"):
            del self.__dict__[name]
        self.name_node = name_node

    def __getattr__(self, name):
        return getattr(self.__dict__["name_node"], name)


class NameNode(server.Server):
    def __init__(self, handler=Handler):
        super().__init__(handler=handler)
        self.name_node, self.folders, self.user = None, {""}, "me"
        self.takes_options, self.has_batches, self.list_answer = True, True, None
        self.exception = "AccessControlException"  # of a fault 403
        self.data_node = DataNode(self, handler)
        self.leads_to = self.data_node.url

    def stop(self):
        self.data_node.stop()
        super().stop()

    def make_parents(self, name):
        self.folders |= {name[:found.start()] for found in re.finditer("/", name)}
