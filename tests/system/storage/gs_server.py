"""A server of Google Cloud Storage's JSON API, of tokens for service accounts, and of a machine's metadata, as they
are documented. It keeps files as server.py does, under "/bucket/key"."""
import base64
import email
import hashlib
import json
import re
import time
import urllib.parse

import server

SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")  # before a hash that RSA signs
KEPT_UNIT = 256 << 10  # of a part that is no last one


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Handler(server.Handler):
    """server.has_tokens: what has none that was given out is refused. server.modulus: of the account's key."""

    def refuse(self, status, code, message):
        text = json.dumps({"error": {"code": status, "message": message}}, indent=1)
        self.send(status, text.encode(), {"Retry-After": "0"} if status in (429, 503) else {}, None)

    @staticmethod
    def said(status, text, headers=None):
        return status, json.dumps(text).encode(), headers or {}

    def answer(self, body, fault):
        path, _, text = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        if path == "/token":
            return self.give_token(dict(urllib.parse.parse_qsl(body.decode())))
        if path == "/computeMetadata/v1/instance/service-accounts/default/token":
            return self.new_token() if self.headers.get("Metadata-Flavor") == "Google" else (403, b"", {})
        if path.startswith("/session/"):
            return self.resume(path, body)
        if self.server.has_tokens and self.headers.get("Authorization") not in self.server.tokens:
            return self.said(401, {"error": {"code": 401, "message": "Invalid Credentials"}})
        found = re.fullmatch(r"(/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?(?:/rewriteTo/b/([^/]+)/o/([^/]+))?", path)
        if not found:
            return self.said(404, {"error": {"message": "no such method"}})
        upload, bucket, key, to_bucket, to_key = (part and urllib.parse.unquote(part) for part in found.groups())
        if upload:
            return self.upload(f"/{bucket}/{query['name']}", query["uploadType"], body)
        if key is None and self.server.list_answer is not None:
            return 200, self.server.list_answer, {}
        if key is None:
            return self.list_names(f"/{bucket}/", query)
        name = f"/{bucket}/{key}"
        if name not in self.server.files:
            return self.said(404, {"error": {"code": 404, "message": f"No such object: {name[1:]}"}})
        if to_key:
            return self.rewrite(name, f"/{to_bucket}/{to_key}", query.get("rewriteToken"))
        if self.command == "DELETE":
            del self.server.files[name]
            return 204, b"", {}
        return self.get(self.server.files[name], fault)

    # ---- tokens ----

    def new_token(self):
        token = f"ya29.{len(self.server.tokens)}-{server.hashed(b'secret')}"
        self.server.tokens.append("Bearer " + token)
        return self.said(200, {"access_token": token, "expires_in": self.server.lives_s, "token_type": "Bearer"})

    def give_token(self, form):
        if form["grant_type"] == "refresh_token":
            is_right = [form[name] for name in ("client_id", "client_secret", "refresh_token")] == list(self.server.person)
            return self.new_token() if is_right else self.said(
                400, {"error": "invalid_grant", "error_description": f"Bad Request: {form['refresh_token']}"})
        header, claims, proof = form["assertion"].split(".")
        said = json.loads(decoded(claims))
        signed = pow(int.from_bytes(decoded(proof), "big"), 65537, self.server.modulus)
        size = (self.server.modulus.bit_length() + 7) // 8
        hashed = SHA256_INFO + hashlib.sha256(f"{header}.{claims}".encode()).digest()
        is_right = (signed.to_bytes(size, "big") == b"\0\1" + b"\xff" * (size - len(hashed) - 3) + b"\0" + hashed
                    and json.loads(decoded(header)) == {"alg": "RS256", "typ": "JWT"}
                    and self.headers["Content-Type"] == "application/x-www-form-urlencoded"
                    and form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
                    and said["iss"] == "me@project" and said["aud"] == self.server.url + "/token"
                    and abs(said["iat"] - time.time()) < 60 and said["exp"] == said["iat"] + 3600)
        if is_right:
            return self.new_token()
        return self.said(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})

    # ---- objects ----

    def list_names(self, start, query):
        wanted = query.get("prefix", "")
        keys = sorted(name[len(start):] for name in self.server.files if name.startswith(start + wanted))
        prefixes = set()
        if "delimiter" in query:
            prefixes = {wanted + key[len(wanted):].split("/")[0] + "/" for key in keys if "/" in key[len(wanted):]}
            keys = [key for key in keys if "/" not in key[len(wanted):]]
        first = int(query.get("pageToken", "0+").rstrip("+"))
        answer = {"kind": "storage#objects"}
        if keys:
            answer["items"] = [{"name": key} for key in keys[first:first + server.PAGE_KEYS]]
        if prefixes and first == 0:
            answer["prefixes"] = sorted(prefixes)
        if first + server.PAGE_KEYS < len(keys):
            answer["nextPageToken"] = f"{first + server.PAGE_KEYS}+"
        return self.said(200, answer)

    def rewrite(self, source, target, token):
        if token is None:  # a part of the copy was made
            return self.said(200, {"done": False, "rewriteToken": "to/be+continued"})
        if token != "to/be+continued":
            return self.said(400, {"error": {"message": "another token"}})
        self.server.files[target] = self.server.files[source]
        return self.said(200, {"done": True})

    def upload(self, name, kind, body):
        if kind == "media":
            self.server.files[name] = body
            return self.said(200, {"name": name})
        if kind == "multipart":
            message = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + body
            about, content = email.message_from_bytes(message).get_payload()
            json.loads(about.get_payload())
            self.server.files[name] = content.get_payload(decode=True)
            return self.said(200, {"name": name})
        session = f"/session/{len(self.server.uploads)}-{server.hashed(name.encode())}"
        self.server.uploads[session] = [name, b""]
        return 200, b"", {"Location": (self.server.leads_to or self.server.url) + session}

    def resume(self, session, body):
        if session in self.server.done:  # of which the answer was lost
            return self.said(200, {})
        if session not in self.server.uploads:
            return self.said(404, {"error": {"message": "no such upload"}})
        if self.command == "DELETE":
            del self.server.uploads[session]
            return 499, b"", {}
        name, kept = self.server.uploads[session]
        first, last, total = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", self.headers["Content-Range"]).groups()
        if int(first) > len(kept) or int(last) + 1 - int(first) != len(body):
            return self.said(400, {"error": {"message": "a gap"}})
        kept += body[len(kept) - int(first):]
        if total == "*" and self.server.keeps_some:
            self.server.keeps_some -= 1
            kept = kept[:len(kept) - KEPT_UNIT]
        self.server.uploads[session][1] = kept
        if total == "*" or len(kept) < int(total):
            return 308, b"", {"Range": f"bytes=0-{len(kept) - 1}"} if kept else {}
        self.server.files[name] = kept
        self.server.done.add(session)
        del self.server.uploads[session]
        return self.said(200, {"name": name})


def start(modulus=None, handler=Handler):
    served = server.Server(handler=handler)
    served.has_tokens, served.modulus = modulus is not None, modulus
    served.tokens, served.lives_s, served.person = [], 3600, None
    served.done, served.keeps_some, served.list_answer = set(), 0, None
    served.leads_to = None  # where an upload is said to be
    return served
