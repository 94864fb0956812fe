"""A server of files by HTTP and S3 that can be told to go wrong.

It keeps what it has in a dictionary from paths ("/bucket/key") to bytes, gives ranges, lists keys, takes objects whole
and in parts, checks Signature Version 4 where it has keys, and writes down what it was asked. `fault` is asked before
every answer; what it returns is done instead of, or to, the answer.
"""
import base64
import collections
import functools
import hashlib
import hmac
import http.server
import re
import threading
import time
import urllib.parse
import xml.sax.saxutils

import program

REASONS = {500: "InternalError", 503: "SlowDown", 429: "TooManyRequests"}
NOT_DONE = ("drop", "silence", "error inside")  # what such requests ask for
ENDS = ("drop", "silence", "drop after", "half a head")  # of connections
PAGE_KEYS = 3  # of a list: small, so that lists have pages
FAULTS_MAX = 4  # of one request, which is tried six times


def hashed(data):
    return hashlib.sha256(data).hexdigest()


@functools.lru_cache(maxsize=16)
def tag_of(data):
    """Of what is asked for range by range it is found once."""
    return hashlib.md5(data).hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def some(fault):
    """The same faults, but no more of one request than are tried again, in whatever order requests come that are made
    at once."""
    failed = collections.Counter()

    def fails(number, request):
        what = fault(number, request)
        which = request.command, request.path, request.headers.get("Range")
        failed[which] += what is not None
        return what if failed[which] <= FAULTS_MAX else None
    return fails


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, keys=None, has_ranges=True, has_tags=True, is_s3=False, handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.keys, self.has_ranges, self.has_tags, self.is_s3 = keys, has_ranges, has_tags, is_s3
        self.files, self.uploads = {}, {}
        self.token = None
        self.stray_keys = []  # in every list, whatever was asked for
        self.asked = []  # (method, path with query, range or None)
        self.fault = lambda number, request: None
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # a client that was killed

    def count(self, pattern):
        return sum(bool(re.search(pattern, f"{method} {path}")) for method, path, _ in self.asked)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def do(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with server.lock:  # it is done before another one is looked at
            number = len(server.asked)
            server.asked.append((self.command, self.path, self.headers.get("Range")))
            fault = server.fault(number, self)
            refusal = self.is_signed(body) if server.keys else None
            is_done = not refusal and fault not in NOT_DONE and not isinstance(fault, (int, threading.Event))
            answer = self.answer(body, fault) if is_done else None
        if fault == "silence":
            time.sleep(30)
        elif isinstance(fault, threading.Event):  # no answer comes until that is set, nor after it
            fault.wait(program.LIMIT_S)
            self.close_connection = True
        elif isinstance(fault, int):
            self.refuse(fault, REASONS.get(fault, "Refused"), "asked to fail")
        elif refusal and fault != "drop":
            self.refuse(403, "SignatureDoesNotMatch", refusal)
        elif fault == "error inside":
            self.send(200, b"<Error><Code>InternalError</Code><Message>try again</Message></Error>", {}, fault)
        elif fault != "drop":
            self.send(*answer, fault=fault)
        self.close_connection |= fault in ENDS

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do

    # ---- answers ----

    def refuse(self, status, code, message):
        text = f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self.send(status, text.encode(), {"Retry-After": "0"} if status in (429, 503) else {}, None)

    def send(self, status, body, headers, fault):
        if fault == "drop after":  # it was done, and nobody hears of it
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if fault == "half a head":
            self.flush_headers()
            self.wfile.write(b"Content-Le")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "short":
            body = body[:len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)

    def answer(self, body, fault):
        path, _, text = self.path.partition("?")
        path = urllib.parse.unquote(path)
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        if self.server.is_s3 and self.command == "GET" and "list-type" in query:
            return self.list(path, query)
        if self.command in ("PUT", "POST", "DELETE") and self.server.is_s3:
            return self.change(path, query, body)
        if path not in self.server.files:
            return self.missing()
        if self.command in ("GET", "HEAD"):
            return self.get(self.server.files[path], fault)
        return 405, b"", {}

    def missing(self):
        text = b"<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"
        return 404, text, {}

    def get(self, data, fault):
        headers = {"Accept-Ranges": "bytes"}
        if self.server.has_tags:
            headers["ETag"] = f'"{tag_of(data)}"'
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if not found or not self.server.has_ranges:
            return 200, data, headers
        first, last = int(found[1]), min(int(found[2]), len(data) - 1)
        if first > last:
            return 416, b"", {"Content-Range": f"bytes */{len(data)}"}
        if fault == "range" and last > first:
            first += 1
        headers["Content-Range"] = f"bytes {first}-{last}/{'*' if fault == 'size' else len(data)}"
        return 206, data[first:last + 1], headers

    def list(self, bucket, query):
        start = bucket + "/"
        keys = sorted(path[len(start):] for path in self.server.files if path.startswith(start))
        keys = [key for key in keys if key.startswith(query["prefix"])]
        deep, prefixes = keys, set()
        if "delimiter" in query:
            keys = [key for key in keys if "/" not in key[len(query["prefix"]):]]
        first = int(base64.b64decode(query.get("continuation-token", "MA==")))
        if "delimiter" in query:
            prefixes = {key[:key.index("/", len(query["prefix"])) + 1] for key in deep
                        if "/" in key[len(query["prefix"]):]}
        page = keys[first:first + PAGE_KEYS] + self.server.stray_keys
        text = "".join(f"<Contents><Key>{urllib.parse.quote_plus(key)}</Key><Owner><ID>Key</ID></Owner></Contents>"
                       for key in page)
        text += "".join(f"<CommonPrefixes><Prefix>{urllib.parse.quote_plus(prefix)}</Prefix></CommonPrefixes>"
                        for prefix in sorted(prefixes) if first == 0)
        is_truncated = first + PAGE_KEYS < len(keys)
        if is_truncated:
            token = base64.b64encode(str(first + PAGE_KEYS).encode()).decode()
            text += f"<NextContinuationToken>{xml.sax.saxutils.escape(token)}</NextContinuationToken>"
        text += f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
        return 200, f"<ListBucketResult>{text}</ListBucketResult>".encode(), {}

    def change(self, path, query, body):
        server = self.server
        if self.command == "DELETE" and "uploadId" not in query:
            server.files.pop(path, None)
            return 204, b"", {}
        copied = self.copied()
        if copied is False:
            return self.missing()
        body = body if copied is None else copied
        if copied is not None and ("partNumber" in query or "uploadId" not in query):
            tag = f"<ETag>&quot;{tag_of(body)}&quot;</ETag>"
            if "partNumber" in query:
                server.uploads[query["uploadId"]][int(query["partNumber"])] = body
            else:
                server.files[path] = body
            return 200, f"<CopyResult>{tag}</CopyResult>".encode(), {}
        if self.command == "PUT" and "partNumber" not in query:
            server.files[path] = body
            return 200, b"", {"ETag": f'"{tag_of(body)}"'}
        if self.command == "POST" and "uploads" in query:
            name = f"upload-{len(server.uploads)}"
            server.uploads[name] = {}
            return 200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>" \
                .encode(), {}
        parts = server.uploads.get(query["uploadId"])
        if parts is None:
            return 404, b"<Error><Code>NoSuchUpload</Code><Message>no such upload</Message></Error>", {}
        if self.command == "DELETE":
            del server.uploads[query["uploadId"]]
            return 204, b"", {}
        if self.command == "PUT":
            parts[int(query["partNumber"])] = body
            return 200, b"", {"ETag": f'"{tag_of(body)}"'}
        wanted = re.findall(r"<PartNumber>(\d+)</PartNumber>", body.decode())
        server.files[path] = b"".join(parts[int(number)] for number in wanted)
        del server.uploads[query["uploadId"]]
        return 200, b"<CompleteMultipartUploadResult/>", {}

    def copied(self):
        """None: nothing is; False: what is not there."""
        source = self.headers.get("x-amz-copy-source")
        if source is None:
            return None
        data = self.server.files.get(urllib.parse.unquote(source))
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("x-amz-copy-source-range") or "")
        if data is None:
            return False
        return data[int(found[1]):int(found[2]) + 1] if found else data

    # ---- Signature Version 4, as the server side of it is described ----

    def is_signed(self, body):
        """None, or why not."""
        proof = self.headers.get("Authorization", "")
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=(\S+?)/(\d{8})/(\S+?)/s3/aws4_request, ?"
                             r"SignedHeaders=(\S+?), ?Signature=([0-9a-f]{64})", proof)
        if not found:
            return "no proof"
        name, day, region, names, signature = found.groups()
        if self.headers.get("x-amz-security-token", self.server.token) != self.server.token:
            return "another token"
        secret = self.server.keys.get(name)
        if secret is None:
            return "unknown key"
        if self.headers.get("x-amz-content-sha256") != hashed(body):
            return "another body"
        path, _, query = self.path.partition("?")
        pairs = sorted(pair if "=" in pair else pair + "=" for pair in query.split("&") if pair)
        lines = [self.command, path, "&".join(pairs)]
        lines += [f"{header}:{self.headers[header].strip()}" for header in names.split(";")]
        request = "\n".join([*lines, "", names, hashed(body)])
        date = self.headers["x-amz-date"]
        text = "\n".join(["AWS4-HMAC-SHA256", date, f"{day}/{region}/s3/aws4_request", hashed(request.encode())])
        key = ("AWS4" + secret).encode()
        for word in (day, region, "s3", "aws4_request"):
            key = mac(key, word)
        return None if mac(key, text).hex() == signature else "another signature"
